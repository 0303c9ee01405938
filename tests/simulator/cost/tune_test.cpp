#include "attest/simulator/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "attest/problem/error.h"

namespace attest {
namespace {

Case square(std::int64_t headdim, std::int64_t seqlen, Causal causal = Causal::none) {
  Case c;
  c.problem.nheads = c.problem.nheads_k = 8;
  c.problem.headdim = c.problem.headdim_v = headdim;
  c.problem.seqlen_q = c.problem.seqlen_k = seqlen;
  c.problem.causal = causal;
  return c;
}

/// One tuning for all tests of it.
const TuneResult& tuned() {
  static const TuneResult result = tune(square(128, 1024), load_device("a100"));
  return result;
}

TEST(PlanSpace, HasHundredsOfPlansUnderNamesOfTheirOwn) {
  for (const char* device : {"a100", "h200"}) {
    const auto space = plan_space(square(128, 1024), load_device(device));
    EXPECT_GE(space.size(), 450u);
    std::set<std::string> names;
    for (const DescribedPlan& plan : space) EXPECT_TRUE(names.insert(plan.name).second) << plan.name;
  }
}

TEST(Tune, EveryPlanIsRankedOrSkippedWithAReason) {
  const TuneResult& r = tuned();
  EXPECT_GE(r.ranked.size() + r.skipped.size(), plan_space(r.c, r.device).size() + 2);
  EXPECT_GT(r.ranked.size(), 100u);
  for (const SkippedPlan& plan : r.skipped) {
    EXPECT_FALSE(plan.reason.empty());
    EXPECT_FALSE(plan.detail.empty());
    EXPECT_THROW(simulate(r.c, plan.plan.plan, r.device), InvalidInput) << plan.plan.name;
  }
  int sum = 0;
  for (const auto& [reason, count] : r.skipped_by_reason()) sum += count;
  EXPECT_EQ(sum, static_cast<int>(r.skipped.size()));
  EXPECT_GT(r.skipped_by_reason().at("shared memory"), 0);
  for (const TunedPlan& plan : r.ranked) EXPECT_LE(plan.plan.plan.smem_bytes(), 166912u) << plan.plan.name;
}

TEST(Tune, SkipsWhatTmaCannotAddress) {
  Case c;
  c.problem.headdim = c.problem.headdim_v = 60;
  const TuneResult r = tune(c, load_device("h100"));
  EXPECT_GT(r.skipped_by_reason().at("unaligned for TMA"), 100);
  for (const TunedPlan& plan : r.ranked) EXPECT_NE(plan.plan.plan.copy_kind, CopyKind::tma) << plan.plan.name;
}

TEST(Tune, RankedByTimeAndTheBestAreWalkedInFull) {
  const TuneResult& r = tuned();
  int full = 0;
  bool others = false;
  for (std::size_t i = 0; i < r.ranked.size(); ++i) {
    const TunedPlan& plan = r.ranked[i];
    full += plan.walked_in_full ? 1 : 0;
    others = others || !plan.walked_in_full;
    EXPECT_NE(plan.walked_in_full, others) << "full ones first";
    if (i > 0 && plan.walked_in_full) {
      EXPECT_GE(plan.report.time_us, r.ranked[i - 1].report.time_us / 1.005) << "but for what cannot be told apart";
    }
    if (plan.named) {
      EXPECT_TRUE(plan.walked_in_full);
    }
  }
  EXPECT_GE(full, TuneOptions{}.full);
  const SimulationReport alone = simulate(r.c, r.winner().plan.plan, r.device);
  EXPECT_EQ(alone.time_us, r.winner().report.time_us);
}

// The short walks must not lose the best plan: of the plans that they put in the middle none is faster in full.
TEST(Tune, TheRoughRankKeepsTheBest) {
  const TuneResult& r = tuned();
  for (std::size_t i = 20; i < r.ranked.size(); i += r.ranked.size() / 12)
    EXPECT_GE(simulate(r.c, r.ranked[i].plan.plan, r.device).time_us, 0.99 * r.winner().report.time_us)
        << r.ranked[i].plan.name;
}

TEST(Tune, NoNamedPlanOfThatKindBeatsTheSpace) {
  for (const TunedPlan& plan : tuned().ranked)
    if (plan.named) {
      EXPECT_GE(1.005 * plan.report.time_us, tuned().winner().report.time_us) << plan.plan.name;
    }
}

// A device of cube and vector cores: tiles that fit its buffers, and wider key tiles than a GPU's plan has.
TEST(Tune, UnifiedBuffer) {
  const TuneResult r = tune(square(64, 2048), load_device("ascend910b"));
  EXPECT_GT(r.skipped_by_reason().at("a buffer is too small"), 0);
  EXPECT_GT(r.winner().plan.plan.tile_n, 64);
  for (const TunedPlan& plan : r.ranked)
    if (plan.named) {
      EXPECT_GT(plan.report.time_us, r.winner().report.time_us) << plan.plan.name;
    }
}

TEST(Tune, SaysWhy) {
  const TuneResult& r = tuned();
  ASSERT_GE(r.why.size(), 3u);
  EXPECT_NE(r.why[0].find(r.winner().plan.name + " wins with"), std::string::npos) << r.why[0];
  EXPECT_NE(r.why[0].find("bound by " + r.winner().report.bound), std::string::npos) << r.why[0];
  EXPECT_TRUE(r.why[1].starts_with(r.ranked[1].plan.name)) << r.why[1];
  EXPECT_NE(r.why[1].find("instead of"), std::string::npos) << r.why[1];
  bool fa2 = false;
  for (const std::string& sentence : r.why) {
    fa2 = fa2 || sentence.starts_with("fa2 ");
    // fa2 pads 128 columns to 128, which is no difference
    EXPECT_EQ(sentence.find("padded_headdim"), std::string::npos) << sentence;
  }
  EXPECT_TRUE(fa2);
}

TEST(Tune, SaysWhereThereIsNothingToCompute) {
  Case c = square(64, 128);
  c.problem.seqlen_q = 0;
  const TuneResult r = tune(c, load_device("a100"));
  EXPECT_EQ(r.why,
            (std::vector<std::string>{"There is nothing to compute: no query sees a key, and every plan is as fast."}));
}

TEST(Tune, JsonAndTable) {
  const auto json = to_json(tuned(), 5);
  EXPECT_EQ(json["schema"], "attest/tune/1");
  EXPECT_GE(json["ranked"].size(), 5u);
  EXPECT_EQ(json["ranked"].size() + json["others"].size(), tuned().ranked.size());
  for (const char* name : {"time_us", "dram_read_bytes", "smem_wavefronts", "smem_wavefronts_ideal",
                           "spill_bytes_per_thread", "ctas_per_sm", "registers_per_thread", "bound", "plan"})
    EXPECT_TRUE(json["ranked"][0].contains(name)) << name;
  // the winner's plan is a file that --plan reads
  const DescribedPlan winner =
      plan_from_json_text(json["ranked"][0]["plan"].dump(), "winner.json", tuned().c, tuned().device);
  EXPECT_EQ(winner.plan, tuned().winner().plan.plan);
  const std::string table = to_table(tuned(), 5);
  for (const char* word : {"fa2", "attest", "conflicts", "skipped:", "wins with"})
    EXPECT_NE(table.find(word), std::string::npos) << word;
}

TEST(Tune, RanksOnlyWhatIsAskedFor) {
  const std::vector<std::string> asked = {"matrix_kind=mma_sync", "stages=2"};
  TuneOptions options{.where = plan_conditions("where", asked), .full = 2, .rough_events = 200};
  options.rough_line_accesses = 500;
  const TuneResult r = tune(square(64, 1024), load_device("h200"), options);
  for (const TunedPlan& tuned : r.ranked) {
    EXPECT_EQ(tuned.plan.plan.matrix_kind, MatrixKind::mma_sync) << tuned.plan.name;
    EXPECT_EQ(tuned.plan.plan.stages, 2) << tuned.plan.name;
  }
  EXPECT_GT(r.skipped_by_reason().at("not asked for"), 500);
}

TEST(Tune, SaysWhatNoPlanHas) {
  const auto refusal = [](const char* device, const std::vector<std::string>& asked, int headdim = 64) -> std::string {
    try {
      TuneOptions options;
      options.where = plan_conditions("where", asked);
      tune(square(headdim, 64), load_device(device), options);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_THAT(refusal("a100", {"matrix_kind=wgmma"}), testing::HasSubstr("wgmma"));
  EXPECT_THAT(refusal("a100", {"stages=4"}), testing::MatchesRegex("where: stages=4 is met by none of [0-9]+ plans; "
                                                                   "stages 2 is not 4"));
  EXPECT_THAT(refusal("a100", {"stages=4", "tile_m=48"}), testing::StartsWith("where: stages=4 and tile_m=48 is met"));
  EXPECT_THAT(refusal("a100", {"matrix_kind=wgmma"}), testing::StartsWith("device: a100 takes none of "));
  EXPECT_THAT(
      refusal("mtt-s4000", {}, 256),
      testing::MatchesRegex("headdim: 256 is taken by none of [0-9]+ plans on mtt-s4000; tile_m 32 with tile_n 16 "
                            "and stages 1 takes 32768 bytes of shared memory, more than "
                            "smem_bytes_per_cta_max = 28672 of mtt-s4000"));
  EXPECT_THAT(refusal("h200", {"copy_kind=tma"}, 60),
              testing::MatchesRegex(
                  "headdim: 60 is taken by none of [0-9]+ plans on h200 with copy_kind=tma; copy_kind tma needs "
                  "strides of multiples of 16 bytes, and headdim = 60 with row_gap = 0 makes them 120"));
  EXPECT_THAT(refusal("a100", {"stages=7"}), testing::HasSubstr("stages: 7 is outside 1 to 4 (in --where)"));
  EXPECT_THAT(refusal("a100", {"matrix_kind=wmma"}), testing::HasSubstr("must be one of mma_sync, wgmma"));
}

TEST(Tune, CasesWithoutAPredictionAreRefused) {
  Case c = square(64, 64);
  c.backward = true;
  EXPECT_THROW(tune(c, load_device("a100")), InvalidInput);
}

}  // namespace
}  // namespace attest
