// Who meets whom in shared memory's 32 banks: the tiles that matrix steps read, and the wavefronts of each kind of
// access, with and without the swizzle.
#pragma once
#include <cstdint>
#include <vector>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"
#include "attest/simulator/counts.h"

namespace attest {

/// What a lane reads: `num_banks` banks from `bank` on, of one row of the tile.
struct BankLane {
  int row = 0, byte = 0;  // of the row, before it is swizzled; -1 where an access does not say
  int bank = 0, num_banks = 4;
};

/// A tile in shared memory. `lanes` are served together, in `ways` wavefronts; `first_banks` holds, for each row of the
/// tile, the bank where its first 16 bytes begin.
struct TileBanks {
  Operand operand = Operand::k;
  std::vector<BankLane> lanes;
  int ways = 0;
  std::vector<int> first_banks;
};

/// Bytes between shared memory and registers, 128 for each wavefront without conflicts, and into it from L2.
struct SharedTraffic {
  double fill_bytes = 0, read_bytes = 0, write_bytes = 0;
};

struct BankMap {
  bool swizzled = true;
  std::vector<TileBanks> tiles;         // Q, K, V
  std::vector<AccessWavefronts> kinds;  // those that occur, of the whole case
  SharedTraffic traffic;
};

/// `plan` as it is, but swizzled or not. Lanes are those of the first access to each operand in the kernel's own
/// program; of a plan whose matrix unit reads tiles itself, 8 rows of the first 16 bytes.
BankMap bank_map(const Case& c, const KernelPlan& plan, bool swizzled);

}  // namespace attest
