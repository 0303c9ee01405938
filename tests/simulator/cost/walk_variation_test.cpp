// How key tiles vary in a walk, and what CTAs of an SM find in its L1.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attest/simulator/step_time.h"
#include "attest/simulator/tile_walk.h"
#include "copy_time.h"
#include "in_step.h"
#include "measured_rows.h"
#include "noise.h"
#include "traffic.h"

namespace attest {
namespace {

constexpr double cycles = 1e5;  // of a key tile: DRAM, which has it sooner, binds none

DeviceSpec device_of_one_clock() {
  DeviceSpec device = load_device("h200");
  std::fill(device.gpc_clocks.begin(), device.gpc_clocks.end(), 1.0);
  return device;
}

/// One head of 264 query tiles, so that two CTAs an SM walk its 256 key tiles together.
Case one_head() {
  Case c;
  c.problem = {1,  1, 1, std::int64_t{264} * 64, std::int64_t{256} * 64, 128, 128, Dtype::bf16, {}, Causal::none,
               -1, -1};
  return c;
}

TileWalkOptions options_of(double noise) {
  TileWalkOptions options;
  options.cycles_per_key_tile = {cycles, cycles};
  options.noise = noise;
  return options;
}

/// When the followed SMs' CTAs have done each of their key tiles, by SM and place on it.
std::map<std::pair<int, int>, std::vector<double>> ends_of(const TileWalk& walk) {
  std::map<std::pair<int, int>, std::vector<double>> ends;
  for (const TimelineEvent& e : walk.timeline)
    if (e.kind == TimelineEvent::Kind::key_tile) ends[{e.sm, e.slot}].push_back(e.end);
  return ends;
}

struct Moments {
  double sum = 0, squares = 0;
  int n = 0;
  void add(double x) { sum += x, squares += x * x, ++n; }
  double mean() const { return sum / n; }
  double deviation() const { return std::sqrt(squares / n - mean() * mean()); }
};

Moments key_tiles_of(const TileWalk& walk) {
  Moments all;
  for (const auto& [place, ends] : ends_of(walk))
    for (std::size_t i = 1; i < ends.size(); ++i) all.add(ends[i] - ends[i - 1]);
  return all;
}

TEST(WalkVariation, IsTheStepsOfWhatIsNotWaitedFor) {
  const DeviceSpec device = device_of_one_clock();
  const KernelPlan plan;
  const double step = step_deviation(plan, device, 2);
  ASSERT_GT(step, 0);
  for (const double noise : {0.0, 1.0, 2.0})
    for (const double waits : {0.0, 0.5 * cycles}) {
      TileWalkOptions options = options_of(noise);
      options.waits_per_key_tile.assign(options.cycles_per_key_tile.size(), waits);
      const Moments tiles = key_tiles_of(walk_tiles(one_head(), plan, device, 2, options));
      ASSERT_EQ(tiles.n, 4 * 2 * 255);
      EXPECT_NEAR(tiles.mean() / cycles, 1, 0.002);
      EXPECT_NEAR(tiles.deviation(), noise * step * (cycles - waits), 0.03 * noise * step * cycles + 1e-3);
    }
}

// CTAs in step vary with their SM, which has a pace of its own; what one is ahead of the other does not add up.
TEST(WalkVariation, CtasInStepStayWithinAKeyTilesOfEachOther) {
  const DeviceSpec device = load_device("h200");
  const KernelPlan plan;
  const InStepTimes of = in_step_times(false, true);
  const double apart = std::sqrt(2.0) * of.apart * cycles;
  TileWalkOptions options = options_of(1);
  options.in_step = true;
  const TileWalk walk = walk_tiles(one_head(), plan, device, 2, options);
  const auto ends = ends_of(walk);
  ASSERT_EQ(ends.size(), 8u);
  Moments behind, paces;
  for (const auto& [place, mine] : ends) {
    if (place.second != 0) continue;
    const std::vector<double>& other = ends.at({place.first, 1});
    for (std::size_t i = 0; i < mine.size(); ++i) {
      behind.add(other[i] - mine[i]);
      EXPECT_LE(std::abs(other[i] - mine[i] - of.lag * cycles), 4 * apart);
    }
    paces.add((mine.back() - mine.front()) / static_cast<double>(mine.size() - 1) / cycles);
  }
  EXPECT_NEAR(behind.mean(), of.lag * cycles, apart);  // of 4 x 256 key tiles some 13 that do not hang together
  EXPECT_NEAR(paces.mean(), 1, 2 * of.of_sm);
  EXPECT_GT(paces.deviation(), 0.3 * of.of_sm);  // of four SMs
  EXPECT_LT(paces.deviation(), 2 * of.of_sm);
  const double of_a_tile = std::sqrt(2 * (1 - std::exp(-1 / of.spreads_in))) * of.apart;
  EXPECT_NEAR(key_tiles_of(walk).deviation(), std::hypot(of.of_tile * cycles, of_a_tile * cycles, of.of_sm * cycles),
              0.5 * of.of_sm * cycles);
}

// By clocks (in_step_lags.csv): after 8 to 256 key tiles CTAs of an SM are .021 to .033 of one more or less behind each
// other than on average, however far apart they began.
TEST(WalkVariation, CtasInStepSpreadAsByClocks) {
  InStepTimes of = in_step_times(false, true);
  of.of_tile = of.of_sm = 0;  // which both share
  Noise noise;
  Slot slot;
  std::map<int, Moments> ahead;  // by key tiles
  constexpr int ctas = 20'000;
  for (int cta = 0; cta < ctas; ++cta) {
    slot.walk.first = slot.position = cta % 7;
    double since = slot.ahead;  // of the CTA before
    for (int tile = 1; tile <= 256; ++tile) {
      ++slot.position;
      since += varied_in_step(slot, of, 1, 1, 2, noise);
      if (std::has_single_bit(static_cast<unsigned>(tile)) && tile >= 8) ahead[tile].add(since);
    }
  }
  std::map<int, std::vector<double>> by_clocks;  // some of few pairs that are far apart
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/in_step_lags.csv"))
    if (row.at("call") != "pages" && row.at("pair") != "0")
      by_clocks[std::stoi(row.at("tiles"))].push_back(std::stod(row.at("deviation")));
  EXPECT_EQ(by_clocks.size(), ahead.size());
  for (const auto& [tiles, of_ctas] : ahead) {
    std::vector<double>& counted = by_clocks.at(tiles);
    ASSERT_EQ(counted.size(), 6u);
    std::ranges::sort(counted);
    const double spread = std::sqrt(2.0) * of_ctas.deviation(), median = (counted[2] + counted[3]) / 2;
    std::printf("%3d key tiles: %.4f of %.4f\n", tiles, spread, median);
    EXPECT_NEAR(of_ctas.mean(), 0, 0.001);
    EXPECT_NEAR(spread, median, 0.0015);
  }
}

// By clocks (in_step_gpcs.csv), of CTAs with pages that do not begin with the launch: SMs of a GPC are as far apart
// after few key tiles as after many, half of the TPCs' older CTAs not at all, GPCs by the time, and younger CTAs of an
// SM a part of a key tile behind.
TEST(WalkVariation, CtasWithPagesGoAsByClocks) {
  const InStepTimes of = in_step_times(true, false);
  Moments lag, in_gpc, of_gpcs, together;  // of the second and the third wave's ends
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/in_step_gpcs.csv")) {
    const auto number = [&](const char* name) { return std::stod(row.at(name)); };
    if (!row.at("call").starts_with("pages") || number("pair") < 2) continue;
    lag.add(number("median"));
    if (number("pair") == 2) in_gpc.add((number("gpc_q84") - number("gpc_q16")) / 2);
    of_gpcs.add(number("gpcs") / (number("tiles") * number("pair")));
    together.add(number("first_together"));
  }
  constexpr int sms = 132, gpcs = 8, launches = 60;
  Moments behind, about_gpc, as_one, paces;
  Noise noise;
  for (int launch = 0; launch < launches; ++launch) {
    std::array<std::array<double, 2>, sms> ends{};
    for (int sm = 0; sm < sms; ++sm)
      for (int number = 0; number < 2; ++number) {
        Slot slot;
        slot.sm = sm, slot.gpc = sm / 2 % gpcs, slot.number = number, slot.draws = std::int64_t{1000} * launch;
        for (slot.position = 1; slot.position <= 32; ++slot.position)
          ends[sm][number] += varied_in_step(slot, of, 1, 1, 2, noise);
      }
    for (int gpc = 0; gpc < gpcs; ++gpc) {
      Moments of_gpc;
      for (int sm = 0; sm < sms; ++sm)
        if (sm / 2 % gpcs == gpc) of_gpc.add(ends[sm][0]);
      paces.add(of_gpc.mean() / 32);
    }
    for (int sm = 0; sm < sms; ++sm) {
      behind.add(ends[sm][1] - ends[sm][0]);
      const int other = sm / 2 % gpcs * 2;  // of its GPC
      if (sm / 2 != other / 2) about_gpc.add((ends[sm][0] - ends[other][0]) / std::sqrt(2.0));
      if (sm % 2 == 0) as_one.add(ends[sm][0] == ends[sm + 1][0] ? 1 : 0);
    }
  }
  std::printf("behind %.3f of %.3f, in a GPC %.3f of %.3f, GPCs %.4f of %.4f, together %.2f of %.2f\n", behind.mean(),
              lag.mean(), about_gpc.deviation(), in_gpc.mean(), paces.deviation(), of_gpcs.mean(), as_one.mean(),
              together.mean());
  EXPECT_NEAR(behind.mean(), lag.mean(), 0.01);
  EXPECT_NEAR(about_gpc.deviation(), in_gpc.mean(), 0.02);
  EXPECT_NEAR(paces.deviation(), of_gpcs.mean(), 0.0012);  // of eight that are drawn once
  EXPECT_NEAR(as_one.mean(), together.mean(), 0.1);        // which TPCs do is drawn once
}

// An event of several key tiles varies as so many events of one.
TEST(WalkVariation, CtasInStepSpreadAsFarInOneEventAsInSeveral) {
  InStepTimes of = in_step_times(false, true);
  of.of_tile = of.of_sm = 0;
  Moments at_once, one_by_one;
  Noise noise;
  Slot slot;
  for (int cta = 0; cta < 20'000; ++cta) {
    slot.position = 16;
    at_once.add(slot.ahead + varied_in_step(slot, of, 1, 16, 2, noise));
    double since = slot.ahead;
    for (slot.position = 1; slot.position <= 16; ++slot.position) since += varied_in_step(slot, of, 1, 1, 2, noise);
    one_by_one.add(since);
  }
  EXPECT_NEAR(at_once.deviation(), one_by_one.deviation(), 0.03 * one_by_one.deviation());
}

// SMs of a TPC that go together ask for tiles together, which then merge: with pages all do.
TEST(WalkVariation, MatesAskTogether) {
  const DeviceSpec device = load_device("h200");
  TileWalkOptions options = options_of(1);
  options.cycles_per_key_tile = {1e4, 1e4};
  options.in_step = true;
  Case paged = one_head();
  paged.layout.page_size = 64;
  const KernelPlan plan;
  const double of_pages = walk_tiles(paged, plan, device, 2, options).l2_read_bytes,
               of_rows = walk_tiles(one_head(), plan, device, 2, options).l2_read_bytes;
  EXPECT_LT(of_pages, 0.8 * of_rows);
}

// Of two CTAs that walk a head together the second finds what the first has asked for.
TEST(WalkVariation, TheSecondCtaOfAnSmFindsTheFirstsTilesInL1) {
  const DeviceSpec device = device_of_one_clock();
  const KernelPlan plan;
  TileWalkOptions options = options_of(0);
  const TileWalk without = walk_tiles(one_head(), plan, device, 2, options);
  EXPECT_EQ(without.l1_served, 0);
  EXPECT_EQ(without.together, 0);
  options.l1_serves = 0.75;
  const TileWalk walk = walk_tiles(one_head(), plan, device, 2, options);
  EXPECT_NEAR(walk.l1_served, 0.75 / 2, 1e-9);
  EXPECT_NEAR(walk.together, 1, 1 / 256.0);
  EXPECT_EQ(walk_tiles(one_head(), plan, device, 1, options).l1_served, 0);
  Case heads = one_head();
  heads.problem.nheads = heads.problem.nheads_k = 264, heads.problem.seqlen_q = 64;
  EXPECT_EQ(walk_tiles(heads, plan, device, 2, options).l1_served, 0);
  options.cycles_together = {cycles, 0.5 * cycles};
  EXPECT_NEAR(walk_tiles(one_head(), plan, device, 2, options).cycles / walk.cycles, 0.5, 0.005);
}

}  // namespace
}  // namespace attest
