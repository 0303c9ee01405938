// What copies bring of memory that their rows do not have: the rest of lines, and what boxes ask for beyond a tensor's
// columns (head_boxes.csv, beyond_columns.csv).
#include "box_beyond.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "attest/plan/catalog.h"
#include "attest/simulator/report.h"
#include "measured_rows.h"

namespace attest {
namespace {

constexpr std::int64_t half = 64;

TEST(BoxBeyond, NothingWhereBoxesEndWithTheRow) {
  EXPECT_EQ(asked_beyond(4096, 256, 3).first, asked_beyond(4096, 256, 3).last);
  EXPECT_EQ(asked_beyond(64, 128, 0).first, asked_beyond(64, 128, 0).last);
}

// Columns 64 to 72 are in the box's first sector, which is the tensor's: the three behind it are asked for.
TEST(BoxBeyond, SectorsThatTheRowHasAPartOfAreItsOwn) {
  const ByteRange beyond = asked_beyond(0, 144, 0);
  EXPECT_EQ(beyond.first, 128 + 256 + 32);
  EXPECT_EQ(beyond.last, 128 + 256 + 128);
}

/// A tensor of 16-bit columns, and a head of it that boxes read, with CUtensorMapL2promotion's value.
struct Head {
  int columns, heads, head, promotion;
  bool operator<(const Head& other) const {
    return std::tie(columns, heads, head, promotion) <
           std::tie(other.columns, other.heads, other.head, other.promotion);
  }
};

struct Halves {  // of lines, by number
  std::set<std::int64_t> own, beyond;
};

/// That the first `rows` rows bring to L2.
Halves halves_of(const Head& h, int rows) {
  const std::int64_t brought = h.promotion == 2 ? 2 * half : half, row_bytes = std::int64_t{2} * h.columns;
  const auto add = [&](std::set<std::int64_t>& to, std::int64_t first, std::int64_t last) {
    const std::int64_t end = (last + brought - 1) / brought * brought;
    for (std::int64_t at = first / brought * brought; at < end; at += half) to.insert(at / half);
  };
  Halves halves;
  for (int row = 0; row < rows; ++row) {
    const std::int64_t begin = row_bytes * (row * h.heads + h.head);
    add(halves.own, begin, begin + row_bytes);
    const ByteRange beyond = asked_beyond(begin, row_bytes, row);
    if (beyond.first < beyond.last) add(halves.beyond, beyond.first, beyond.last);
  }
  return halves;
}

// One head's rows were read: of all halves of lines these were in L2 afterwards, and no others. A few are gone before
// they are looked for.
TEST(BoxBeyond, AsksForTheHalvesThatAreFoundInL2) {
  std::map<Head, std::set<std::int64_t>> found;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_L2 "/beyond_columns.csv")) {
    const auto number = [&](const char* name) { return std::stoi(row.at(name)); };
    found[{number("columns"), number("heads"), number("head"), number("promotion")}].insert(number("half"));
  }
  for (const auto& entry : found) {
    const Head& head = entry.first;
    const std::set<std::int64_t>& halves = entry.second;
    const Halves named = halves_of(head, 64);
    const auto in_l2 = [&](std::int64_t at) { return halves.contains(at); };
    const auto own_seen = std::ranges::count_if(named.own, in_l2), seen = std::ranges::count_if(named.beyond, in_l2);
    const auto others = std::ranges::count_if(
        halves, [&](std::int64_t at) { return !named.own.contains(at) && !named.beyond.contains(at); });
    std::printf(
        "%3d columns, %2d heads, head %2d, promotion %d: %3td of %3zu of its own, %3td of %3zu beyond, %td others\n",
        head.columns, head.heads, head.head, head.promotion, own_seen, named.own.size(), seen, named.beyond.size(),
        others);
    EXPECT_EQ(others, 0);
    EXPECT_GE(own_seen, 0.97 * static_cast<double>(named.own.size()));
    EXPECT_GE(seen, 0.87 * static_cast<double>(named.beyond.size()));
  }
  EXPECT_EQ(found.size(), 17);
}

// One head or two, once by both sides.
TEST(BoxBeyond, DramReadsAreThoseOfBoxes) {
  constexpr int l2_256 = 3;
  int n = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_L2 "/head_boxes.csv")) {
    const auto number = [&](const char* name) { return std::stoi(row.at(name)); };
    if (number("rounds") != 1 || number("promotion") == l2_256) continue;
    std::set<std::int64_t> all;
    for (int head = number("first"); head < number("first") + number("read"); ++head) {
      const Halves halves = halves_of({number("columns"), number("heads"), head, number("promotion")}, number("rows"));
      all.insert(halves.own.begin(), halves.own.end());
      all.insert(halves.beyond.begin(), halves.beyond.end());
    }
    EXPECT_NEAR(static_cast<double>(all.size()) * half / std::stod(row.at("dram__bytes_read.sum")), 1, 0.005);
    ++n;
  }
  EXPECT_EQ(n, 21);
}

// Of each row the sectors that its boxes ask for, once each, are what L2 counts; the rest is the launch's own.
TEST(BoxBeyond, L2CountsThemAsRead) {
  constexpr int l2_256 = 3, sector = 32, sides = 2;
  int n = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_L2 "/head_boxes.csv")) {
    const auto number = [&](const char* name) { return std::stoi(row.at(name)); };
    if (number("rounds") != 1 || number("promotion") == l2_256) continue;
    double sectors = 0;
    const std::int64_t row_bytes = std::int64_t{2} * number("columns");
    for (int head = number("first"); head < number("first") + number("read"); ++head)
      for (int r = 0; r < number("rows"); ++r) {
        const std::int64_t begin = row_bytes * (r * number("heads") + head);
        std::set<std::int64_t> asked;
        const ByteRange beyond = asked_beyond(begin, row_bytes, r);
        for (const ByteRange& range : {ByteRange{begin, begin + row_bytes}, beyond})
          for (std::int64_t at = range.first / sector; at < range.last / sector; ++at) asked.insert(at);
        sectors += static_cast<double>(asked.size());
      }
    EXPECT_NEAR(sides * sectors / std::stod(row.at("lts__t_sectors_srcunit_tex_op_read.sum")), 1, 0.003);
    ++n;
  }
  EXPECT_EQ(n, 21);
}

SimulationReport of(const char* plan, std::int64_t nheads, std::int64_t queries, std::int64_t keys,
                    std::int64_t headdim, int row_gap = 0) {
  Case c;
  c.problem = {1, nheads, nheads, queries, keys, headdim, headdim, Dtype::bf16, {}, Causal::none, -1, -1};
  c.layout.row_gap = row_gap;
  const DeviceSpec h200 = load_device("h200");
  return simulate(c, plan_named(plan, c, h200), h200, plan);
}

// All of it fits L2. Where cp.async brings lines of which half is nobody's, DRAM is read twice; halves of a neighbour
// are read for it. So it is where SMs ask for each byte once, too: a decoding step, one query tile.
TEST(BoxBeyond, DramIsReadForAllThatLinesBring) {
  for (const char* plan : {"fa2", "attest"})
    for (const std::int64_t queries : {1, 64, 2048}) {
      SCOPED_TRACE(testing::Message() << plan << ", " << queries << " queries");
      const SimulationReport gap = of(plan, 4, queries, 2048, 32, 32), dense = of(plan, 4, queries, 2048, 32);
      EXPECT_NEAR(gap.walk.dram_read_bytes / gap.walk.first_read_bytes, 2, 0.02);
      EXPECT_NEAR(dense.walk.dram_read_bytes / dense.walk.first_read_bytes, 1, 1e-3);
      EXPECT_LE(gap.l2_read_bytes, gap.sm_read_bytes);  // which ask for none of it
    }
}

// What a box asks for beyond its columns is other heads': read once where they follow soon, else twice.
TEST(BoxBeyond, OtherHeadsAreReadTwiceWhereTheyComeLate) {
  const auto again = [](std::int64_t nheads, std::int64_t seqlen, std::int64_t headdim) {
    const SimulationReport r = of("cudnn", nheads, seqlen, seqlen, headdim);
    return r.dram_read_bytes / r.walk.first_read_bytes - 1;
  };
  EXPECT_NEAR(again(8, 1024, 96), 0, 1e-3);
  EXPECT_GT(again(28, 12288, 96), 0.2);
  EXPECT_LT(again(28, 12288, 128), 0.02);
}

}  // namespace
}  // namespace attest
