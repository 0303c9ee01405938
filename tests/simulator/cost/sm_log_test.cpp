// What a walk notes of twelve SMs' CTAs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "attest/simulator/tile_walk.h"
#include "tile_walks.h"

namespace attest {
namespace {

// Of an SM's six CTAs of five key tiles, one or two at a time: each starts and finishes in its slot, and of its key
// tiles two are kept behind each start or finish.
TEST(SmLog, SmsAreFollowedFromStartToFinish) {
  using Kind = SmEvent::Kind;
  DeviceSpec device = load_device("h200");
  device.num_sms = 1;
  for (const int ctas_per_sm : {1, 2}) {
    Case c = case_of(1, 6, 6, 128, 64);
    c.problem.seqlen_k = 5 * 128;
    const TileWalk w = walk_tiles(c, plan_for(c), device, ctas_per_sm, times());
    ASSERT_EQ(w.sms.size(), 1U);
    std::vector<std::int64_t> heads;
    std::vector<Kind> last(static_cast<std::size_t>(ctas_per_sm), Kind::finish);
    int tiles = 0;  // alike, since any start or finish
    double now = 0;
    for (const SmEvent& e : w.sms[0].events) {
      EXPECT_GE(e.at, now);
      now = e.at;
      Kind& before = last.at(static_cast<std::size_t>(e.slot));
      EXPECT_EQ(e.kind == Kind::start, before == Kind::finish);
      EXPECT_NE(e.kind, Kind::masked);
      before = e.kind;
      tiles = e.kind == Kind::whole ? tiles + 1 : 0;
      EXPECT_LE(tiles, 2 * ctas_per_sm);
      if (e.kind == Kind::finish) heads.push_back(e.tile.head);
    }
    std::ranges::sort(heads);
    EXPECT_EQ(heads, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  }
}

// A CTA without queries is not among them, whose events would be a start and a finish.
TEST(SmLog, SmsAreFollowedByCtasWithRows) {
  DeviceSpec device = load_device("h200");
  device.num_sms = 1;
  Case c = case_of(2, 1, 1, 128, 64);
  c.problem.varlen_q = {0, 128}, c.problem.varlen_k = {128, 128};
  const TileWalk w = walk_tiles(c, plan_for(c), device, 1, times());
  ASSERT_EQ(w.sms.size(), 1U);
  EXPECT_EQ(w.ctas, 2);
  const auto count = [&](SmEvent::Kind kind) { return std::ranges::count(w.sms[0].events, kind, &SmEvent::kind); };
  EXPECT_EQ(count(SmEvent::Kind::start), 1);
  EXPECT_EQ(count(SmEvent::Kind::finish), 1);
  for (const SmEvent& e : w.sms[0].events) EXPECT_EQ(e.tile.batch, 1);
}

// Thirty CTAs of one SM, of which 24 are followed to their finish; called again the same.
TEST(SmLog, AnSmIsFollowedUntil24HaveFinished) {
  DeviceSpec device = load_device("h200");
  device.num_sms = 1;
  const Case c = case_of(1, 30, 30, 128, 64);
  TileWalkOptions options = times();
  for (const bool warm : {false, true}) {
    options.warm = warm;
    const TileWalk w = walk_tiles(c, plan_for(c), device, 2, options);
    ASSERT_EQ(w.sms.size(), 1U);
    EXPECT_EQ(std::ranges::count(w.sms[0].events, SmEvent::Kind::finish, &SmEvent::kind), 24);
    EXPECT_EQ(w.sms[0].events.back().kind, SmEvent::Kind::finish);
  }
}

// Of all SMs twelve, and of their key tiles those with a mask are told.
TEST(SmLog, TwelveSmsAreFollowed) {
  Case c = case_of(4, 64, 64, 512, 512);
  c.problem.causal = Causal::bottom_right;
  const TileWalk w = walk_tiles(c, plan_for(c), load_device("h200"), 2, times());
  ASSERT_EQ(w.sms.size(), 12U);
  std::set<int> numbers;
  std::int64_t finishes = 0, masked = 0, whole = 0;
  for (const SmEvents& sm : w.sms) {
    numbers.insert(sm.sm);
    finishes += std::ranges::count(sm.events, SmEvent::Kind::finish, &SmEvent::kind);
    masked += std::ranges::count(sm.events, SmEvent::Kind::masked, &SmEvent::kind);
    whole += std::ranges::count(sm.events, SmEvent::Kind::whole, &SmEvent::kind);
  }
  EXPECT_EQ(numbers.size(), 12U);
  EXPECT_GE(finishes, 12 * 14);  // 2048 CTAs on 132 SMs are 15 or 16 of each
  EXPECT_LE(finishes, 12 * 17);
  EXPECT_GT(masked, 0);
  EXPECT_GT(whole, 0);
}

}  // namespace
}  // namespace attest
