#include "attest/simulator/backward_hazards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "attest/plan/backward.h"

namespace attest {
namespace {

using Kind = BackwardStep::Kind;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

BackwardPlan plan_of(int warps, int stages, bool dq_over_p) {
  BackwardPlan plan;
  plan.headdim = plan.headdim_v = 64;
  plan.tile_m = plan.tile_n = 16 * warps;
  plan.num_warps = warps;
  plan.stages = stages;
  plan.dq_over_p = dq_over_p;
  return plan;
}

BackwardWork work_of(const BackwardPlan& plan, int query_tiles, int heads = 1) {
  BackwardWork work;
  work.seqlen_q = plan.tile_m * query_tiles - 5;
  work.seqlen_k = plan.tile_n;
  work.num_heads = heads;
  return work;
}

template <class Plan>
BackwardProgram program_of(const BackwardPlan& base, int query_tiles, int heads = 1) {
  Plan plan;
  static_cast<BackwardPlan&>(plan) = base;
  return record_backward(plan, work_of(base, query_tiles, heads),
                         [](const auto& p, const auto& w, auto& ops) { backward(p, w, ops); });
}

template <class Plan>
std::vector<std::string> hazards_of(const BackwardPlan& base, int query_tiles = 4, int heads = 1) {
  return find_backward_hazards(base, program_of<Plan>(base, query_tiles, heads));
}

/// The program without the steps for which leave_out(warp, step) holds.
template <class LeaveOut>
BackwardProgram without(BackwardProgram program, LeaveOut leave_out) {
  for (std::size_t w = 0; w < program.warps.size(); ++w)
    std::erase_if(program.warps[w], [&](const BackwardStep& step) { return leave_out(w, step); });
  return program;
}

TEST(BackwardHazards, NoneInARightPlan) {
  for (const int warps : {1, 2, 4})
    for (const int stages : {1, 2, 3})
      for (const bool dq_over_p : {false, true})
        for (const int query_tiles : {1, 2, 5})
          for (const int heads : {1, 2})
            EXPECT_THAT(hazards_of<BackwardPlan>(plan_of(warps, stages, dq_over_p), query_tiles, heads), IsEmpty())
                << warps << " warps, " << stages << " stages, dQ over P " << dq_over_p << ", " << query_tiles;
}

struct NoBarrierAtTop : BackwardPlan {
  constexpr bool barrier_at_top() const { return false; }
};
struct NoBarrierBeforeProducts : BackwardPlan {
  constexpr bool barrier_before_products() const { return false; }
};
struct NoBarrierBeforeDq : BackwardPlan {
  constexpr bool barrier_before_dq() const { return false; }
};
struct NoBarrierAfterDq : BackwardPlan {
  constexpr bool barrier_after_dq() const { return false; }
};
struct NoBarrierBeforeRefill : BackwardPlan {
  constexpr bool barrier_before_refill() const { return false; }
};
struct WaitsForOneGroupTooFew : BackwardPlan {
  constexpr int queries_pending() const { return BackwardPlan::queries_pending() + 1; }
};

// Each barrier and wait that is gone is found by the names of what it parted, wherever the plan needs it.
TEST(BackwardHazards, NameWhatABarrierParted) {
  for (const int warps : {2, 4})
    for (const int stages : {1, 2, 3})
      for (const bool dq_over_p : {false, true}) {
        SCOPED_TRACE(testing::Message() << warps << " warps, " << stages << " stages, dQ over P " << dq_over_p);
        const BackwardPlan plan = plan_of(warps, stages, dq_over_p);
        EXPECT_THAT(hazards_of<NoBarrierAtTop>(plan),
                    IsSupersetOf({"Q of query tile 0 is read without a barrier after "
                                  "its wait",
                                  "dO of query tile 1 is read without a barrier after "
                                  "its wait",
                                  "K is read without a barrier after its wait"}));
        EXPECT_THAT(hazards_of<NoBarrierBeforeProducts>(plan),
                    Contains("P of query tile 2 is read without a barrier after its write"));
        EXPECT_THAT(hazards_of<NoBarrierAfterDq>(plan),
                    Contains("dQ of query tile 0 is read without a barrier after its write"));
        const std::vector<std::string> before_dq = hazards_of<NoBarrierBeforeDq>(plan);
        if (dq_over_p) {
          EXPECT_THAT(before_dq, Contains("dQ of query tile 1 is written in the epoch of another warp's read of P of "
                                          "query tile 1: no barrier before its place is used again"));
        } else {
          EXPECT_THAT(before_dq, IsEmpty());  // the plan has none there
        }
        const std::vector<std::string> refill = hazards_of<NoBarrierBeforeRefill>(plan);
        if (stages == 1) {
          EXPECT_THAT(refill, Contains("Q of query tile 1 is written in the epoch of another warp's read of Q of query "
                                       "tile 0: no barrier before its place is used again"));
        } else {
          EXPECT_THAT(refill, IsEmpty());
        }
        EXPECT_THAT(hazards_of<WaitsForOneGroupTooFew>(plan),
                    IsSupersetOf({"K is read before its copy was waited for",
                                  "D of query tile 3 is read before its copy was waited for"}));
      }
}

// Of a single warp the barriers part nothing; what it waits for still counts.
TEST(BackwardHazards, OneWarpNeedsNoBarrier) {
  const BackwardPlan plan = plan_of(1, 1, true);
  EXPECT_THAT(hazards_of<NoBarrierAtTop>(plan), IsEmpty());
  EXPECT_THAT(hazards_of<NoBarrierBeforeProducts>(plan), IsEmpty());
  EXPECT_THAT(hazards_of<WaitsForOneGroupTooFew>(plan), Contains("V is read before its copy was waited for"));
}

// Heads of a group are told apart.
TEST(BackwardHazards, NameTheHead) {
  EXPECT_THAT(hazards_of<NoBarrierBeforeRefill>(plan_of(2, 1, false), 1, 2),
              Contains("Q of query tile 0, head 1 is written in the epoch of another warp's read of Q of query tile 0: "
                       "no barrier before its place is used again"));
}

// Steps taken out of a right program, in some warps or in all.
TEST(BackwardHazards, FindWhatIsTakenOutOfAProgram) {
  const BackwardPlan plan = plan_of(2, 2, false);
  const BackwardProgram right = program_of<BackwardPlan>(plan, 2);
  const auto found = [&](auto leave_out) { return find_backward_hazards(plan, without(right, leave_out)); };
  EXPECT_THAT(found([](std::size_t, const BackwardStep& s) { return s.kind == Kind::wait; }),
              IsSupersetOf({"Q of query tile 1 is read before its copy was waited for",
                            "dK is written over K, whose copy is in flight"}));
  EXPECT_THAT(
      found([](std::size_t, const BackwardStep& s) { return s.kind == Kind::copy && s.operand == BackwardTile::k; }),
      ElementsAre("K is read where nothing was written"));
  EXPECT_THAT(found([](std::size_t, const BackwardStep& s) {
                return s.kind == Kind::copy && s.operand == BackwardTile::dout && s.tile == 1;
              }),
              ElementsAre("dO of query tile 1 is read where nothing was written"));
  EXPECT_THAT(found([](std::size_t, const BackwardStep& s) { return s.kind == Kind::stage; }),
              ElementsAre("dK is read and finds K", "dV is read and finds V"));

  const auto is_barrier = [](const BackwardStep& s) { return s.kind == Kind::barrier; };
  const auto barriers = std::count_if(right.warps[0].begin(), right.warps[0].end(), is_barrier);
  std::array<std::ptrdiff_t, 2> met{};
  EXPECT_THAT(found([&](std::size_t w, const BackwardStep& s) { return is_barrier(s) && ++met[w] == barriers; }),
              Contains("dK is read without a barrier after its write"));
  met = {};
  EXPECT_THAT(found([&](std::size_t w, const BackwardStep& s) { return w == 1 && is_barrier(s) && ++met[w] == 1; }),
              Contains("some warps meet a barrier that others do not"));
  // Every barrier parts something: none can be taken out of all warps unseen.
  for (std::ptrdiff_t which = 1; which <= barriers; ++which) {
    met = {};
    EXPECT_THAT(found([&](std::size_t w, const BackwardStep& s) { return is_barrier(s) && ++met[w] == which; }),
                Not(IsEmpty()))
        << "barrier " << which << " of " << barriers;
  }
}

// A place that was read too early is named by what was to be read there, not by something else.
TEST(BackwardHazards, EarlyReadIsNamedByWhatWasMeant) {
  for (const std::string& hazard : hazards_of<NoBarrierAtTop>(plan_of(2, 1, false), 1))
    if (hazard.starts_with("K ")) {
      EXPECT_THAT(hazard, Not(HasSubstr(" of Q")));
    }
}

}  // namespace
}  // namespace attest
