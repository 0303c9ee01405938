#include "attest/sass/loops.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace attest {
namespace {

struct Family {
  std::string_view opcode, ptx;
  std::vector<std::string_view> opcodes;  // first words that count
  bool has_width;                         // bytes a lane stand in the opcode
};

const std::array<Family, num_sass_families>& families() {
  static const std::array<Family, num_sass_families> all = {{
      {"LDGSTS", "cp.async", {"LDGSTS"}, true},
      {"UTMALDG", "cp.async.bulk (TMA)", {"UTMALDG", "UTMASTG", "UBLKCP", "UTMAREDG", "UBLKRED"}, false},
      {"LDSM", "ldmatrix", {"LDSM"}, false},
      {"STSM", "stmatrix", {"STSM"}, false},
      {"LDS", "ld.shared", {"LDS"}, true},
      {"STS", "st.shared", {"STS"}, true},
      {"HMMA", "mma.sync", {"HMMA", "IMMA", "QMMA"}, false},
      {"HGMMA", "wgmma", {"HGMMA", "IGMMA", "QGMMA"}, false},
      {"MUFU.EX2", "ex2.approx", {"MUFU.EX2"}, false},
      {"LDL", "a spilled word loaded", {"LDL"}, true},
      {"STL", "a word spilled", {"STL"}, true},
      {"LDG", "ld.global", {"LDG"}, true},
      {"STG", "st.global", {"STG"}, true},
      {"BAR", "bar.sync", {"BAR"}, false},
      {"SYNCS", "mbarrier", {"SYNCS"}, false},
  }};
  return all;
}

/// Whether the opcode is `word`, or begins with it and a dot.
bool begins(std::string_view opcode, std::string_view word) {
  return opcode.starts_with(word) && (opcode.size() == word.size() || opcode[word.size()] == '.');
}

std::optional<std::size_t> family_of(std::string_view opcode) {
  for (std::size_t f = 0; f < num_sass_families; ++f)
    for (const std::string_view word : families()[f].opcodes)
      if (begins(opcode, word)) return f;
  return std::nullopt;
}

/// Bytes a lane: the opcode says 8 or 16 bits, 64 or 128, and is silent for 32.
int bytes_a_lane(std::string_view opcode) {
  int bytes = 4;
  for (std::size_t dot = opcode.find('.'); dot != std::string_view::npos;) {
    const std::size_t next = opcode.find('.', dot + 1);
    const std::string_view part = opcode.substr(dot + 1, next == std::string_view::npos ? next : next - dot - 1);
    if (part == "U8" || part == "S8") bytes = 1;
    if (part == "U16" || part == "S16") bytes = 2;
    if (part == "64") bytes = 8;
    if (part == "128") bytes = 16;
    dot = next;
  }
  return bytes;
}

/// Where the instructions of each family and width stand in a function: any stretch of it is counted in logarithmic
/// time, however many loops nest.
class Positions {
 public:
  explicit Positions(std::span<const SassInstruction> code) {
    for (std::size_t i = 0; i < code.size(); ++i)
      if (const auto f = family_of(code[i].opcode))
        of_[*f][families()[*f].has_width ? bytes_a_lane(code[i].opcode) : no_width].push_back(i);
  }

  /// From `first` to before `end`.
  SassCounts count(std::size_t first, std::size_t end) const {
    SassCounts counts;
    counts.instructions = static_cast<std::int64_t>(end - first);
    for (std::size_t f = 0; f < num_sass_families; ++f)
      for (const auto& [bytes, at] : of_[f]) {
        const auto n = std::ranges::lower_bound(at, end) - std::ranges::lower_bound(at, first);
        counts.by_family[f] += n;
        if (bytes != no_width && n > 0) counts.widths[f][bytes] = n;
      }
    return counts;
  }

 private:
  static constexpr int no_width = 0;
  std::array<std::map<int, std::vector<std::size_t>>, num_sass_families> of_;  // by bytes a lane
};

/// Where the instruction of an address stands, the first one if several have it.
class Places {
 public:
  explicit Places(std::span<const SassInstruction> code) {
    sorted_.reserve(code.size());
    for (std::size_t i = 0; i < code.size(); ++i) sorted_.emplace_back(code[i].address, i);
    std::ranges::sort(sorted_);
  }
  std::optional<std::size_t> of(std::int64_t address) const {
    const auto at = std::ranges::lower_bound(sorted_, address, {}, &Place::first);
    return at != sorted_.end() && at->first == address ? std::optional(at->second) : std::nullopt;
  }

 private:
  using Place = std::pair<std::int64_t, std::size_t>;
  std::vector<Place> sorted_;
};

std::int64_t matrix_steps(const SassCounts& counts) {
  return counts.of(SassFamily::multiply) + counts.of(SassFamily::multiply_warpgroup);
}

}  // namespace

std::string_view opcode_of(SassFamily family) { return families()[static_cast<std::size_t>(family)].opcode; }
std::string_view ptx_of(SassFamily family) { return families()[static_cast<std::size_t>(family)].ptx; }

SassContents contents_of(std::span<const SassInstruction> code) {
  const Positions positions(code);
  const Places places(code);
  SassContents contents{positions.count(0, code.size()), {}};
  std::vector<SassLoop>& loops = contents.main_loops;  // of the fewest matrix steps so far
  for (std::size_t last = 0; last < code.size(); ++last) {
    const SassInstruction& branch = code[last];
    if (!branch.target || *branch.target >= branch.address) continue;
    const auto first = places.of(*branch.target);
    if (!first || *first > last) continue;  // no target, or one that a listing has out of order
    SassLoop loop{*branch.target, branch.address, positions.count(*first, last + 1)};
    const std::int64_t steps = matrix_steps(loop.counts);
    if (steps == 0 || loop.counts.of(SassFamily::exponential) == 0) continue;
    if (!loops.empty() && steps > matrix_steps(loops.front().counts)) continue;
    if (!loops.empty() && steps < matrix_steps(loops.front().counts)) loops.clear();
    loops.push_back(std::move(loop));
  }
  std::ranges::stable_sort(loops, {}, &SassLoop::first_address);
  return contents;
}

}  // namespace attest
