// The bank model and the copies' sectors against an H200's counters, pattern by pattern: bench/hardware/bank_probe
// issued each warp instruction `issued` times and wrote down its addresses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "attest/simulator/counts.h"
#include "csv.h"

namespace attest {
namespace {

struct Pattern {
  std::string group, instruction, name;
  SharedAccess access;
  std::vector<std::uint32_t> global;  // of copies: a lane's address
  std::uint32_t present;              // lanes that read
  double wavefronts, sectors, bytes;  // an instruction

  bool is(const char* what) const { return instruction.find(what) != std::string::npos; }
  std::string words() const { return group + ", " + instruction + ", " + name; }
  CopyCost cost() const {
    std::vector<CopiedChunk> lanes;
    for (std::size_t lane = 0; lane < 32; ++lane)
      if ((access.active & present) >> lane & 1) lanes.push_back({global[lane], access.address[lane]});
    return copy_cost(lanes);
  }
};

std::vector<std::uint32_t> numbers(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::uint32_t> all;
  for (std::uint32_t x = 0; in >> x;) all.push_back(x);
  return all;
}

std::vector<Pattern> read_patterns() {
  std::ifstream in(ATTEST_MEASURED "/h200_banks.csv");
  std::vector<Pattern> patterns;
  std::map<std::string, std::size_t> at;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    const std::vector<std::string> cells = csv_cells(line);
    if (at.empty()) {
      for (std::size_t i = 0; i < cells.size(); ++i) at[cells[i]] = i;
      continue;
    }
    Pattern& p = patterns.emplace_back();
    p.group = cells[at["group"]], p.instruction = cells[at["instruction"]], p.name = cells[at["pattern"]];
    p.access.kind = p.is("cp.async") ? SharedAccess::Kind::fill_async
                    : p.is("matrix") ? SharedAccess::Kind::load_matrix
                    : p.is("ld.")    ? SharedAccess::Kind::load_word
                                     : SharedAccess::Kind::stage;
    p.access.bytes = std::stoi(cells[at["bytes"]]);
    p.access.active = static_cast<std::uint32_t>(std::stoul(cells[at["active"]]));
    p.present = static_cast<std::uint32_t>(std::stoul(cells[at["present"]]));
    const std::vector<std::uint32_t> shared = numbers(cells[at["shared"]]);
    std::copy(shared.begin(), shared.end(), p.access.address.begin());
    p.global = numbers(cells[at["global"]]);
    const double issued = std::stod(cells[at["issued"]]);
    const auto of_one = [&](const char* counter) { return std::stod(cells[at[counter]]) / issued; };
    p.wavefronts = of_one("smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared.sum");
    p.sectors = of_one("smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum");
    p.bytes = of_one("l1tex__m_xbar2l1tex_read_bytes.sum");
  }
  return patterns;
}

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> all = read_patterns();
  return all;
}

template <class Which, class Expect>
int each(Which which, Expect expect) {
  int count = 0;
  for (const Pattern& p : patterns())
    if (which(p)) {
      SCOPED_TRACE(p.words());
      expect(p);
      ++count;
    }
  return count;
}

// Loads, stores, ldmatrix and stmatrix, whole and under predicates.
TEST(BankPatterns, WavefrontsEqualTheCounterForEveryInstructionBetweenRegistersAndSharedMemory) {
  const int held = each([](const Pattern& p) { return !p.is("cp.async"); },
                        [](const Pattern& p) { EXPECT_EQ(wavefronts(p.access), p.wavefronts); });
  EXPECT_GE(held, 500);
}

TEST(BankPatterns, WavefrontsAndSectorsEqualTheCountersForEveryWholeCopyOf16Bytes) {
  const int held = each([](const Pattern& p) { return p.instruction == "cp.async.16"; },
                        [](const Pattern& p) {
                          EXPECT_EQ(p.cost().wavefronts, p.wavefronts);
                          EXPECT_EQ(p.cost().sectors, p.sectors);
                        });
  EXPECT_GE(held, 100);
}

// What the counters show of other copies: of those that say how many bytes they read their places in shared memory,
// and of those under a predicate nothing, whether it is true or not.
TEST(BankPatterns, CopiesThatMayWriteZerosAreCountedByPlace) {
  const int held = each([](const Pattern& p) { return p.instruction == "cp.async.16 or zero"; },
                        [](const Pattern& p) {
                          EXPECT_EQ(wavefronts(p.access), p.wavefronts);
                          EXPECT_EQ(p.cost().sectors, p.sectors);
                        });
  EXPECT_GE(held, 20);
}
TEST(BankPatterns, CopiesUnderAPredicateAreNotCounted) {
  const int held = each([](const Pattern& p) { return p.is("@p cp.async"); },
                        [](const Pattern& p) {
                          EXPECT_EQ(p.wavefronts, 0);
                          EXPECT_EQ(p.sectors, 0);
                        });
  EXPECT_GE(held, 20);
}

// Reported as they are: the model has a wavefront for each line that a narrow copy reads, the hardware has fewer where
// rows cross lines. Their bytes are those of the sectors they touch.
TEST(BankPatterns, NarrowCopiesReadTheSectorsTheyTouch) {
  std::map<int, std::pair<int, int>> differing;  // by bytes: of how many
  each([](const Pattern& p) { return p.group == "narrow"; },
       [&](const Pattern& p) {
         std::vector<std::uint32_t> sectors, lines;
         for (const std::uint32_t address : p.global) sectors.push_back(address / 32), lines.push_back(address / 128);
         const auto distinct = [](std::vector<std::uint32_t> all) {
           std::sort(all.begin(), all.end());
           return static_cast<int>(std::unique(all.begin(), all.end()) - all.begin());
         };
         EXPECT_EQ(distinct(sectors), p.sectors);
         EXPECT_EQ(32 * distinct(sectors), p.bytes);
         auto& [differ, all] = differing[p.access.bytes];
         differ += std::max(wavefronts(p.access), distinct(lines)) != p.wavefronts;
         ++all;
       });
  for (const auto& [bytes, of] : differing)
    std::printf("copies of %d bytes: wavefronts differ for %d of %d\n", bytes, of.first, of.second);
}

}  // namespace
}  // namespace attest
