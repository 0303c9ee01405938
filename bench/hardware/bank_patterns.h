// The warp instructions on shared memory whose wavefronts are counted.
#pragma once

#include <string>
#include <vector>

#include "accesses.h"

namespace attest::hardware {

struct BankPattern {
  /// "full": every lane has 4 to 16 bytes to move; copies are of 16 bytes. "sectors": such copies, by how lanes come to
  /// share a sector. "narrow": copies of less. "partial": copies of which some lanes may write zeros. "predicated": a
  /// predicate before the instruction, true of all lanes or of some.
  std::string group;
  std::string instruction, name;
  LaneAddresses lanes;
};

std::vector<BankPattern> bank_patterns();

}  // namespace attest::hardware
