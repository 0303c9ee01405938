// What a function of SASS consists of, and its main loop: the instructions that attention lives of, by family.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "attest/sass/listing.h"

namespace attest {

/// Families of instructions, as an opcode's first words name them.
enum class SassFamily : std::uint8_t {
  copy_async,          // LDGSTS: cp.async
  copy_bulk,           // UBLKCP, UTMALDG, UTMASTG and their kin: TMA
  load_matrix,         // LDSM: ldmatrix
  store_matrix,        // STSM: stmatrix
  load_shared,         // LDS
  store_shared,        // STS
  multiply,            // HMMA, IMMA, QMMA: mma.sync of 16-bit, integer and 8-bit elements
  multiply_warpgroup,  // HGMMA, IGMMA, QGMMA: wgmma
  exponential,         // MUFU.EX2
  load_local,          // LDL: what was spilled comes back
  store_local,         // STL
  load_global,         // LDG
  store_global,        // STG
  barrier,             // BAR: bar.sync and named barriers
  mbarrier,            // SYNCS
};
inline constexpr std::size_t num_sass_families = 15;

/// "LDGSTS", and what PTX calls it.
std::string_view opcode_of(SassFamily family);
std::string_view ptx_of(SassFamily family);

/// Of families that move bytes for each lane: instructions by bytes a lane (1 to 16).
using SassWidths = std::map<int, std::int64_t>;

struct SassCounts {
  std::int64_t instructions = 0;
  std::array<std::int64_t, num_sass_families> by_family{};
  std::array<SassWidths, num_sass_families> widths{};  // of loads, stores and copies of memory
  std::int64_t of(SassFamily family) const { return by_family[static_cast<std::size_t>(family)]; }
  const SassWidths& widths_of(SassFamily family) const { return widths[static_cast<std::size_t>(family)]; }
  bool operator==(const SassCounts&) const = default;
};

/// A loop over key tiles: from a backward branch's target to the branch.
struct SassLoop {
  std::int64_t first_address = 0, last_address = 0;
  SassCounts counts;
  bool operator==(const SassLoop&) const = default;
};

struct SassContents {
  SassCounts whole;
  /// The loops that hold the fewest matrix instructions beside exponentials: those over key tiles; a kernel has several
  /// where masked tiles have a loop of their own. In the order of the code; empty where no loop holds both.
  std::vector<SassLoop> main_loops;
};

SassContents contents_of(std::span<const SassInstruction> code);

}  // namespace attest
