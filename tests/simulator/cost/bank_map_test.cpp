#include "attest/simulator/bank_map.h"

#include <gtest/gtest.h>

#include <set>

#include "attest/simulator/case_counts.h"
#include "attest/simulator/report.h"

namespace attest {
namespace {

Case of_headdim(int headdim, Dtype dtype = Dtype::bf16) {
  Case c;
  c.problem = Problem{1, 2, 2, 256, 256, headdim, headdim, dtype, {}, Causal::none, -1, -1};
  return c;
}

KernelPlan plan_of(const Case& c) {
  KernelPlan plan = plan_named("attest", c, load_device("h100"));
  plan.padded_headdim = plan.padded_headdim_v = static_cast<int>(c.problem.headdim);
  return plan;
}

const TileBanks& tile(const BankMap& map, Operand x) {
  for (const TileBanks& t : map.tiles)
    if (t.operand == x) return t;
  throw std::logic_error("no such tile");
}

// Known by hand: rows of 2d bytes, 8 of which ldmatrix reads at once, meet where 2d and 128 have a common factor.
TEST(BankMap, RowsAsTheyAreMeetAsOftenAsTheirLengthDividesALine) {
  const std::pair<int, int> known[] = {{64, 8}, {128, 8}, {192, 8}, {256, 8}, {32, 4}, {96, 4}, {80, 2}};
  for (const auto& [headdim, ways] : known) {
    SCOPED_TRACE(headdim);
    const Case c = of_headdim(headdim);
    const KernelPlan plan = plan_of(c);
    const BankMap map = bank_map(c, plan, false);
    EXPECT_EQ(tile(map, Operand::k).ways, ways);
    EXPECT_EQ(tile(map, Operand::v).ways, ways);
  }
}

TEST(BankMap, SwizzledRowsOfOneReadFillEveryBankOnce) {
  for (const int headdim : {32, 64, 80, 96, 128, 192, 256}) {
    SCOPED_TRACE(headdim);
    const Case c = of_headdim(headdim);
    const BankMap map = bank_map(c, plan_of(c), true);
    for (const Operand x : {Operand::q, Operand::k, Operand::v}) {
      const TileBanks& t = tile(map, x);
      ASSERT_EQ(t.lanes.size(), 8U);
      std::set<int> banks, rows;
      for (const BankLane& lane : t.lanes) banks.insert(lane.bank), rows.insert(lane.row);
      EXPECT_EQ(t.ways, 1);
      EXPECT_EQ(banks.size(), 8U);
      EXPECT_EQ(rows.size(), 8U);
      EXPECT_EQ(*rows.rbegin() - *rows.begin(), 7) << "eight rows that follow each other";
    }
  }
}

TEST(BankMap, NamesTheBytesThatALaneReadsWhereverTheyLie) {
  const Case c = of_headdim(128);
  for (const bool swizzled : {false, true})
    for (const TileBanks& t : bank_map(c, plan_of(c), swizzled).tiles)
      for (const BankLane& lane : t.lanes) {
        EXPECT_EQ(lane.byte, 0) << "the first lanes read the first 16 bytes of their rows";
        EXPECT_EQ(lane.bank, t.first_banks[static_cast<std::size_t>(lane.row)]);
      }
}

TEST(BankMap, PanelsOfBulkCopiesAreFreeOfConflictsOnlySwizzled) {
  const Case c = of_headdim(128);
  const KernelPlan plan = plan_named("fa3", c, load_device("h100"));
  for (const Operand x : {Operand::q, Operand::k, Operand::v}) {
    EXPECT_EQ(tile(bank_map(c, plan, true), x).ways, 1);
    EXPECT_EQ(tile(bank_map(c, plan, false), x).ways, 8);
  }
}

TEST(BankMap, KindsAreTheWavefrontsOfTheWholeCase) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp32}) {
    const Case c = of_headdim(64, dtype);
    const KernelPlan plan = plan_of(c);
    for (const bool swizzled : {false, true}) {
      KernelPlan asked = plan;
      asked.swizzled = swizzled;
      const Counts counts = count_case(c, asked);
      std::int64_t wavefronts = 0, ideal = 0;
      const BankMap map = bank_map(c, plan, swizzled);
      for (const AccessWavefronts& kind : map.kinds) wavefronts += kind.wavefronts, ideal += kind.ideal;
      EXPECT_EQ(wavefronts, counts.smem_wavefronts);
      EXPECT_EQ(ideal, counts.smem_wavefronts_ideal);
      EXPECT_EQ(map.traffic.fill_bytes + map.traffic.read_bytes + map.traffic.write_bytes,
                128.0 * static_cast<double>(ideal));
    }
  }
}

}  // namespace
}  // namespace attest
