#include "attest/sass/loops.h"

#include <algorithm>
#include <unordered_map>

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

}  // namespace

std::string_view opcode_of(SassFamily family) { return families()[static_cast<std::size_t>(family)].opcode; }
std::string_view ptx_of(SassFamily family) { return families()[static_cast<std::size_t>(family)].ptx; }

SassCounts count_sass(std::span<const SassInstruction> code) {
  SassCounts counts;
  counts.instructions = static_cast<std::int64_t>(code.size());
  for (const SassInstruction& instruction : code)
    for (std::size_t f = 0; f < num_sass_families; ++f) {
      const Family& family = families()[f];
      if (std::none_of(family.opcodes.begin(), family.opcodes.end(),
                       [&](std::string_view word) { return begins(instruction.opcode, word); }))
        continue;
      ++counts.by_family[f];
      if (family.has_width) ++counts.widths[f][bytes_a_lane(instruction.opcode)];
    }
  return counts;
}

std::vector<SassLoop> main_loops(const SassFunction& function) {
  std::unordered_map<std::int64_t, std::size_t> index;
  for (std::size_t i = 0; i < function.code.size(); ++i) index.emplace(function.code[i].address, i);
  const auto matrix = [](const SassCounts& counts) {
    return counts.of(SassFamily::multiply) + counts.of(SassFamily::multiply_warpgroup);
  };
  std::vector<SassLoop> loops;
  for (std::size_t last = 0; last < function.code.size(); ++last) {
    const SassInstruction& branch = function.code[last];
    if (!branch.target || *branch.target >= branch.address) continue;
    const auto first = index.find(*branch.target);
    if (first == index.end()) continue;
    const std::span body(function.code.data() + first->second, last - first->second + 1);
    SassLoop loop{*branch.target, branch.address, count_sass(body)};
    if (matrix(loop.counts) > 0 && loop.counts.of(SassFamily::exponential) > 0) loops.push_back(std::move(loop));
  }
  std::int64_t fewest = 0;
  for (const SassLoop& loop : loops) fewest = fewest == 0 ? matrix(loop.counts) : std::min(fewest, matrix(loop.counts));
  std::erase_if(loops, [&](const SassLoop& loop) { return matrix(loop.counts) > fewest; });
  std::sort(loops.begin(), loops.end(),
            [](const SassLoop& a, const SassLoop& b) { return a.first_address < b.first_address; });
  return loops;
}

}  // namespace attest
