// L1's policy access by access, beside the benchmark `l1_rows` (docs/results/h200-l1.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "l1_cache.h"
#include "measured_rows.h"

namespace attest {
namespace {

struct Access {
  char kind;
  std::int64_t row;
  char seen;  // h, m or -: hit, missed or not known
};

std::vector<Access> accesses_of(const MeasuredRow& row) {
  std::vector<Access> all;
  std::istringstream list(row.at("accesses"));
  std::string access;
  while (list >> access) all.push_back({access[0], std::stoll(access.substr(1)), row.at("held")[all.size()]});
  return all;
}

constexpr int prefix = 2200, l1_kib = 256, kib_a_line = 8;  // lines of a KiB

/// Where a sequence begins is not known: the place of the benchmark's buffer, which is one for all sequences, and the
/// set that evicts a line first.
struct Start {
  std::uint32_t buffer = 0;
  std::size_t hand = 0;
};

/// Sectors of each line that an access of that kind asks for, as bits.
unsigned sectors_of(char kind) {
  switch (kind) {
    case 'f':
    case 'a':
    case 'h':  // then the others, while these are on their way
      return 0b0011;
    case 's':
    case 'b':
      return 0b1100;
    case 'x':
      return 0b0111;
    case 'y':
      return 0b1110;
    default:
      return 0b1111;
  }
}

struct Compared {
  int reads = 0, misses = 0, predicted_misses = 0, wrong = 0;
};

/// Of a row's four lines each bank has one, and all do alike. Counted from `from` on; none where the second half of the
/// prefix is predicted otherwise anywhere.
std::optional<Compared> compared(const std::vector<Access>& accesses, int lines, const Start& start, int from) {
  std::unordered_map<std::int64_t, int> number;
  std::vector<std::uint32_t> used;
  for (const Access& a : accesses)
    if (number.try_emplace(a.row, static_cast<int>(used.size())).second)
      used.push_back(static_cast<std::uint32_t>(a.row) ^ start.buffer);
  L1Cache cache(lines, used, start.hand);
  std::vector<unsigned> there(used.size());  // sectors of the rows' lines
  Compared of;
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const Access& a = accesses[i];
    const int of_row = number.at(a.row), line = of_row * L1Cache::lines_a_row;
    bool held = false;
    for (int one = line; one < line + L1Cache::lines_a_row; ++one) {
      held = a.kind == 'w' ? cache.store(one) : cache.load(one, a.kind == 'u');
      if (a.kind == 'd' || a.kind == 'h') cache.load(one, false);
    }
    // an access to other sectors of a line that is held misses, and is a hit to what goes next
    unsigned& sectors = there[static_cast<std::size_t>(of_row)];
    if (!held) sectors = 0;
    held = (sectors & sectors_of(a.kind)) == sectors_of(a.kind);
    if (held || a.kind != 'u') sectors |= a.kind == 'h' ? 0b1111 : sectors_of(a.kind);  // a last use brings no line
    if (a.seen == '-') continue;
    const bool wrong = held != (a.seen == 'h');
    if (static_cast<int>(i) < from) {
      // the first round of the prefix still finds what was there before
      if (static_cast<int>(i) >= prefix / 2 && wrong) return std::nullopt;
      continue;
    }
    ++of.reads, of.misses += a.seen == 'm' ? 1 : 0, of.predicted_misses += held ? 0 : 1, of.wrong += wrong ? 1 : 0;
  }
  return of;
}

/// The first start by which the second half of the prefix is right, where L1 has evicted each line once.
std::optional<std::pair<Start, Compared>> right_start(const std::vector<Access>& accesses, int lines,
                                                      const std::vector<std::uint32_t>& buffers) {
  constexpr std::size_t sets = 128;
  for (const std::uint32_t buffer : buffers)
    for (std::size_t hand = 0; hand < sets; ++hand)
      if (const std::optional<Compared> of = compared(accesses, lines, {buffer, hand}, prefix))
        return {{{buffer, hand}, *of}};
  return std::nullopt;
}

void expect_as_measured(const std::string& file, int of_all, int least_right, double most_wrong) {
  Compared all;
  std::vector<std::uint32_t> all_buffers;
  for (std::uint32_t row = 0; row < 128; ++row) all_buffers.push_back(row);
  std::vector<std::uint32_t> buffers = all_buffers;
  int sequences = 0, right = 0;
  for (const MeasuredRow& row : measured_rows(file)) {
    const std::string& name = row.at("sequence");
    if (name.starts_with("one_set") || name.starts_with("room") || name.starts_with("bank")) continue;
    SCOPED_TRACE(name);
    const int lines = (l1_kib - std::stoi(row.at("smem_kib"))) * kib_a_line;
    if (name == "far_bit16") buffers = all_buffers;  // from here on the range of pages that lie far apart
    const auto best = right_start(accesses_of(row), lines, buffers);
    ASSERT_TRUE(best);
    buffers = {best->first.buffer};
    const Compared& of = best->second;
    std::printf("%-10s %3d reads, %3d miss, %2d predicted otherwise\n", name.c_str(), of.reads, of.misses, of.wrong);
    all.reads += of.reads, all.misses += of.misses, all.wrong += of.wrong, ++sequences;
    right += of.wrong == 0 ? 1 : 0;
  }
  std::printf("%d of %d reads predicted otherwise, %d miss; %d sequences without any\n", all.wrong, all.reads,
              all.misses, right);
  EXPECT_EQ(sequences, of_all);
  EXPECT_GT(all.misses, all.reads / 5);
  EXPECT_GE(right, least_right);
  EXPECT_LE(all.wrong, most_wrong * all.reads);
}

// A line that is looked for just as it goes, once in some hundred accesses, is found or not; the model has it found,
// and is as wrong from there on as two orders of one sequence are.
TEST(L1Rows, AccessByAccessAsOnAnH200) { expect_as_measured(ATTEST_H200_L1 "/rows.csv", 61, 36, 0.02485); }
TEST(L1Rows, AccessByAccessAsOnAnH100) { expect_as_measured(ATTEST_H100 "/l1_rows.csv", 41, 27, 0.0205); }

// Four rows of a set stay, five drive each other out.
void expect_four_ways(const std::string& file) {
  int sequences = 0;
  for (const MeasuredRow& row : measured_rows(file)) {
    const std::string& name = row.at("sequence");
    if (!name.starts_with("one_set")) continue;
    SCOPED_TRACE(name);
    const std::vector<Access> accesses = accesses_of(row);
    const auto rows = static_cast<int>(accesses.size() / 2);
    const std::optional<Compared> of = compared(accesses, 736, {}, rows);
    ASSERT_TRUE(of);
    EXPECT_EQ(of->misses, rows <= 4 ? 0 : rows);
    EXPECT_EQ(of->wrong, 0);
    ++sequences;
  }
  EXPECT_EQ(sequences, 7);
}

TEST(L1Rows, ASetOfAnH200HasFourWays) { expect_four_ways(ATTEST_H200_L1 "/rows.csv"); }
TEST(L1Rows, ASetOfAnH100HasFourWays) { expect_four_ways(ATTEST_H100 "/l1_rows.csv"); }

// Of 60 lines that the model has in one bank, which has room for 42, more than a fourth is missed; where it has half of
// them in another bank few are.
void expect_banks(const std::string& file, int bits) {
  int sequences = 0, of_one_bank = 0;
  for (const MeasuredRow& row : measured_rows(file)) {
    if (!row.at("sequence").starts_with("bank")) continue;
    SCOPED_TRACE(row.at("sequence"));
    const std::vector<Access> accesses = accesses_of(row);
    std::map<std::int64_t, int> number;  // by row
    std::vector<std::uint32_t> rows;
    for (const Access& a : accesses)
      if (number.try_emplace(a.row / L1Cache::lines_a_row, static_cast<int>(rows.size())).second)
        rows.push_back(static_cast<std::uint32_t>(a.row / L1Cache::lines_a_row));
    const int lines = (l1_kib - std::stoi(row.at("smem_kib"))) * kib_a_line;
    int missed = 0, predicted = 0, least_wrong = static_cast<int>(accesses.size());
    for (std::size_t hand = 0; hand < 128; ++hand) {  // which set evicts first is not known: as the first half has it
      L1Cache cache(lines, rows, hand);
      int wrong = 0;
      std::array<int, 2> seen_missed{}, not_held{};  // by half
      for (std::size_t i = 0; i < accesses.size(); ++i) {
        const Access& a = accesses[i];
        const bool held = cache.load(number.at(a.row / L1Cache::lines_a_row) * L1Cache::lines_a_row +
                                         static_cast<int>(a.row % L1Cache::lines_a_row),
                                     false);
        const std::size_t half = 2 * i / accesses.size();
        seen_missed[half] += a.seen == 'm' ? 1 : 0, not_held[half] += held ? 0 : 1;
        wrong += half == 0 && a.seen != '-' && held != (a.seen == 'h') ? 1 : 0;
      }
      if (wrong >= least_wrong) continue;
      least_wrong = wrong, missed = seen_missed[1], predicted = not_held[1];
    }
    EXPECT_NEAR(predicted, missed, 20);
    EXPECT_TRUE(missed < 20 || missed > 55) << missed;
    of_one_bank += missed > 55 ? 1 : 0, ++sequences;
  }
  EXPECT_EQ(sequences, 4 * bits);
  EXPECT_EQ(of_one_bank, bits);
}

TEST(L1Rows, ALinesBankIsTheH200s) { expect_banks(ATTEST_H200_L1 "/rows.csv", 25); }
TEST(L1Rows, ALinesBankIsTheH100s) { expect_banks(ATTEST_H100 "/l1_rows.csv", 11); }

// As many of n rows in random order are found as the model finds, which has room for 56 lines fewer than shared memory
// leaves.
void expect_room(const std::string& file) {
  int sequences = 0;
  for (const MeasuredRow& row : measured_rows(file)) {
    if (!row.at("sequence").starts_with("room")) continue;
    const std::vector<Access> accesses = accesses_of(row);
    const int rows = std::stoi(row.at("sequence").substr(4)), smem_kib = std::stoi(row.at("smem_kib"));
    const std::optional<Compared> of = compared(accesses, (l1_kib - smem_kib) * kib_a_line, {}, 0);
    ASSERT_TRUE(of);
    const auto found = [&](int misses) { return rows * (1 - static_cast<double>(misses) / of->reads); };
    std::printf("%3d KiB of shared memory: of %3d rows %.1f are found, %.1f predicted\n", smem_kib, rows,
                found(of->misses), found(of->predicted_misses));
    EXPECT_NEAR(found(of->predicted_misses) / found(of->misses), 1, 0.03);
    ++sequences;
  }
  EXPECT_EQ(sequences, 8);
}

TEST(L1Rows, AnH200HasRoomForAllButSevenKib) { expect_room(ATTEST_H200_L1 "/rows.csv"); }
TEST(L1Rows, AnH100HasRoomForAllButSevenKib) { expect_room(ATTEST_H100 "/l1_rows.csv"); }

}  // namespace
}  // namespace attest
