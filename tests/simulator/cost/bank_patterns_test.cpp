// The bank model and the copies' sectors against an H200's counters, pattern by pattern: bench/hardware/bank_probe
// issued each warp instruction `issued` times and wrote down its addresses.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "attest/simulator/counts.h"
#include "measured_rows.h"

namespace attest {
namespace {

struct Pattern {
  std::string group, instruction, name;
  SharedAccess access;
  std::vector<std::uint32_t> global;  // of copies: a lane's address
  std::uint32_t present;              // lanes that read
  double wavefronts, sectors, bytes;  // of an issue: an instruction, or four alike

  int instructions() const { return instruction.starts_with("four ") ? 4 : 1; }
  bool is(const char* what) const { return instruction.find(what) != std::string::npos; }
  std::string words() const { return group + ", " + instruction + ", " + name; }
  CopyCost cost() const {
    std::array<std::int64_t, 32> from{};
    std::copy(global.begin(), global.end(), from.begin());
    return copy_cost(access, from, present);
  }
};

std::vector<std::uint32_t> numbers(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::uint32_t> all;
  for (std::uint32_t x = 0; in >> x;) all.push_back(x);
  return all;
}

std::vector<Pattern> read_patterns() {
  std::vector<Pattern> patterns;
  for (const MeasuredRow& row : measured_rows(ATTEST_MEASURED "/h200_banks.csv")) {
    Pattern& p = patterns.emplace_back();
    p.group = row.at("group"), p.instruction = row.at("instruction"), p.name = row.at("pattern");
    p.access.kind = p.is("cp.async") ? SharedAccess::Kind::fill_async
                    : p.is("matrix") ? SharedAccess::Kind::load_matrix
                    : p.is("ld.")    ? SharedAccess::Kind::load_word
                                     : SharedAccess::Kind::stage;
    p.access.bytes = std::stoi(row.at("bytes"));
    p.access.active = static_cast<std::uint32_t>(std::stoul(row.at("active")));
    p.present = static_cast<std::uint32_t>(std::stoul(row.at("present")));
    const std::vector<std::uint32_t> shared = numbers(row.at("shared"));
    std::copy(shared.begin(), shared.end(), p.access.address.begin());
    p.global = numbers(row.at("global"));
    const double issued = std::stod(row.at("issued"));
    const auto of_one = [&](const char* counter) { return std::stod(row.at(counter)) / issued; };
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

TEST(BankPatterns, WavefrontsAndSectorsEqualTheCountersForEveryWholeCopy) {
  const auto hold = [](const Pattern& p) {
    EXPECT_EQ(p.cost().wavefronts, p.wavefronts);
    EXPECT_EQ(p.cost().sectors, p.sectors);
  };
  EXPECT_GE(each([](const Pattern& p) { return p.instruction == "cp.async.16"; }, hold), 100);
  EXPECT_GE(each([](const Pattern& p) { return p.group == "narrow"; }, hold), 80);
}

// The bytes that arrive are those of the sectors, in every copy: whole, narrow, such as write zeros, under a predicate.
TEST(BankPatterns, CopiesReadTheirSectors) {
  const int held = each([](const Pattern& p) { return p.is("cp.async") && (p.access.active & p.present) != 0; },
                        [](const Pattern& p) { EXPECT_EQ(32 * p.instructions() * p.cost().sectors, p.bytes); });
  EXPECT_GE(held, 450);
}

// Copies that may write zeros, of tiles' rows of 128 to 512 bytes, on predicates that are not P0.
TEST(BankPatterns, WavefrontsAndSectorsEqualTheCountersForCopiesThatMayWriteZeros) {
  const auto hold = [](int seen) {
    return [seen](const Pattern& p) {
      EXPECT_EQ(seen * p.cost().wavefronts, p.wavefronts);
      EXPECT_EQ(seen * p.cost().sectors, p.sectors);
    };
  };
  EXPECT_GE(each([](const Pattern& p) { return p.instruction == "four cp.async.16 or zero"; }, hold(4)), 160);
  EXPECT_GE(each([](const Pattern& p) { return p.instruction == "four @p cp.async.16"; }, hold(4)), 6);
}

// The counters take P0 for false: under it nothing is copied, and where a copy reads by it there are zeros alone, but
// for its sectors. (Where it reads unless P0, all lanes do: `CompiledRegisters.CountersTakeP0ForFalse`.)
TEST(BankPatterns, CountersTakeP0ForFalse) {
  const int zeros = each([](const Pattern& p) { return p.instruction == "cp.async.16 or zero"; },
                         [](const Pattern& p) {
                           EXPECT_EQ(wavefronts(p.access), p.wavefronts);
                           EXPECT_EQ(p.cost().sectors, p.sectors);
                         });
  EXPECT_GE(zeros, 160);
  const int nothing = each([](const Pattern& p) { return p.instruction.starts_with("@p cp.async") && p.bytes > 0; },
                           [](const Pattern& p) {
                             EXPECT_EQ(p.wavefronts, 0);
                             EXPECT_EQ(p.sectors, 0);
                             EXPECT_GT(p.cost().wavefronts, 0);
                             EXPECT_GT(p.cost().sectors, 0);
                           });
  EXPECT_GE(nothing, 20);
  // of four alike the first is under P0
  const int all_but_one = each([](const Pattern& p) { return p.instruction == "four @p cp.async.16 or zero"; },
                               [](const Pattern& p) {
                                 EXPECT_EQ(3 * p.cost().wavefronts, p.wavefronts);
                                 EXPECT_EQ(3 * p.cost().sectors, p.sectors);
                               });
  EXPECT_GE(all_but_one, 20);
}

// Headdim 80 in a tile of 96 columns: eight rows of 192 bytes, of whose last 64 a warp copies 32 and fills the rest.
TEST(BankPatterns, ZerosTakeAStoreOfAllLanesUnlessTheyAreStoredAlone) {
  SharedAccess to{SharedAccess::Kind::fill_async, Operand::k, 16, ~0u, {}};
  std::array<std::int64_t, 32> from{};
  std::uint32_t present = 0;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t row = lane / 4, chunk = lane % 4;
    to.address[lane] = static_cast<std::uint32_t>(192 * row + 128 + 16 * chunk);
    from[lane] = static_cast<std::int64_t>(2560 * row + 128 + 16 * chunk);
    present |= chunk < 2 ? 1u << lane : 0;
  }
  const int read = 8, stored = 4, second_rows = 4;
  EXPECT_EQ(copy_cost(to, from, present).wavefronts, read + stored + second_rows);
  EXPECT_EQ(copy_cost(to, from, present, true).wavefronts, read + 4);  // four rows have each of two places in a line
  EXPECT_EQ(copy_cost(to, from, 0).wavefronts, stored);
  EXPECT_EQ(copy_cost(to, from, 0).sectors, 0);
  EXPECT_EQ(copy_cost(to, from, 0b11).wavefronts, 1 + stored);
}

}  // namespace
}  // namespace attest
