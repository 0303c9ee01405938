#include "attest/simulator/hazards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attest/plan/launch.h"

namespace attest {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

std::vector<KernelPlan> plans() {
  std::vector<KernelPlan> all;
  for (const int stages : {1, 2, 3, 4})
    for (const bool merged : {false, true})
      for (const bool q_in_registers : {false, true})
        for (const int warps : {1, 2, 4})
          for (const int headdim_v : {64, 32, 96})
            for (const int element_bytes : {1, 2, 4}) {
              KernelPlan plan{.headdim = 64,
                              .headdim_v = headdim_v,
                              .element_bytes = element_bytes,
                              .tile_m = 16 * warps,
                              .tile_n = 32,
                              .num_warps = warps,
                              .stages = stages,
                              .merged_wait = merged,
                              .q_in_registers = q_in_registers};
              if (plan.invalid() == nullptr) all.push_back(plan);
            }
  return all;
}

Work work(int key_tiles) {
  Work w;
  w.seqlen_q = 100, w.seqlen_k = 32 * key_tiles - 5, w.diagonal = w.seqlen_k - w.seqlen_q;
  return w;
}

template <class Plan>
std::vector<std::string> hazards_of(const KernelPlan& base, int key_tiles) {
  Plan plan;
  static_cast<KernelPlan&>(plan) = base;
  std::vector<std::string> names;
  for (const Hazard& h : find_hazards(plan, record(plan, work(key_tiles)))) names.push_back(h.what);
  return names;
}

TEST(Hazards, NoneInARightPlan) {
  ASSERT_GT(plans().size(), 200u);
  for (const KernelPlan& plan : plans())
    for (const int tiles : {1, 2, 3, 7})
      EXPECT_THAT(hazards_of<KernelPlan>(plan, tiles), testing::IsEmpty())
          << plan.stages << " stages, merged " << plan.merged_wait << ", warps " << plan.num_warps << ", dv "
          << plan.headdim_v;
}

struct OneGroupTooFew : KernelPlan {
  constexpr int k_pending() const { return KernelPlan::k_pending() + 1; }
};
TEST(Hazards, AWaitForOneGroupTooFewIsNamed) {
  for (const KernelPlan& plan : plans())
    EXPECT_THAT(hazards_of<OneGroupTooFew>(plan, 3), testing::Contains(HasSubstr("before its copy was waited for")))
        << plan.stages;
}

struct NoBarrier : KernelPlan {
  constexpr bool barrier_after_wait() const { return false; }
};
TEST(Hazards, AMissingBarrierAfterAWaitIsNamed) {
  for (const KernelPlan& plan : plans())
    EXPECT_THAT(hazards_of<NoBarrier>(plan, 3), testing::Contains(AnyOf(HasSubstr("without a barrier after its wait"),
                                                                        HasSubstr("before its copy was waited for"))))
        << plan.stages << " warps " << plan.num_warps;
}

struct NoRefillBarrier : KernelPlan {
  constexpr bool barrier_before_refill() const { return false; }
};
TEST(Hazards, ASlotFilledWhileAnotherWarpReadsItIsNamed) {
  for (const KernelPlan& plan : plans()) {
    if (plan.stages != 1 || plan.num_warps == 1) continue;
    EXPECT_THAT(hazards_of<NoRefillBarrier>(plan, 3),
                testing::Contains(
                    AnyOf(HasSubstr("no barrier before its slot is filled again"), HasSubstr("is overwritten by"))));
  }
}

struct NoStagingBarrier : KernelPlan {
  constexpr bool staging_needs_barrier() const { return false; }
};
TEST(Hazards, StagingOverAnotherWarpsQueriesIsNamed) {
  int seen = 0;
  for (const KernelPlan& plan : plans()) {
    if (!plan.staging_needs_barrier() || plan.num_warps == 1) continue;
    ++seen;
    EXPECT_THAT(hazards_of<NoStagingBarrier>(plan, 1), testing::Not(testing::IsEmpty()));
  }
  EXPECT_GT(seen, 0);
}

TEST(Hazards, ABarrierThatSomeWarpsSkipIsNamed) {
  KernelPlan plan;
  plan.num_warps = 2, plan.tile_m = 32;
  Program program = record(plan, work(2));
  auto& steps = program.warps[1];
  steps.erase(std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.kind == Step::Kind::barrier; }));
  std::vector<std::string> names;
  for (const Hazard& h : find_hazards(plan, program)) names.push_back(h.what);
  EXPECT_THAT(names, testing::Contains("some warps meet a barrier that others do not"));
}

TEST(Hazards, MisalignedAndOutOfRangeAccessesAreNamed) {
  HazardChecker checker(256, 1);
  checker.begin(0, 0);
  SharedAccess a{SharedAccess::Kind::fill_sync, Operand::k, 16, 1, {}};
  a.address[0] = 8;
  checker.shared(a);
  a.address[0] = 256;
  checker.shared(a);
  std::vector<std::string> names;
  for (const Hazard& h : checker.result()) names.push_back(h.what);
  EXPECT_THAT(names, testing::UnorderedElementsAre("K is accessed at a misaligned address",
                                                   "K is accessed past the end of shared memory"));
}

}  // namespace
}  // namespace attest
