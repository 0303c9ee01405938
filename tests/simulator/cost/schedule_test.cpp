#include "schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "attest/plan/catalog.h"
#include "measured_rows.h"

namespace attest {
namespace {

constexpr std::int64_t batch = 2, nheads = 6, nheads_k = 3;

struct Arrangement {
  const char* name;
  std::int64_t seqlen;
  GridOrder order = GridOrder::tiles_heads_batch;
  Persistence persistence = Persistence::none;
  int key_heads_a_section = 0;  // 0: no sections
  bool longest_first = false;
  int cluster = 1;
  int splits = 1;
};

constexpr Arrangement setups[] = {
    {"plain, batch before heads", 1000, GridOrder::tiles_batch_heads},
    {"plain, heads before batch", 1000, GridOrder::tiles_heads_batch},
    {"plain, splits", 1000, GridOrder::tiles_batch_heads, Persistence::none, 0, false, 1, 3},
    {"static stride", 1024, GridOrder::tiles_heads_batch, Persistence::static_stride},
    {"longest first without sections", 1000, GridOrder::tiles_heads_batch, Persistence::dynamic, 0, true},
    {"sections that divide the heads", 1000, GridOrder::tiles_heads_batch, Persistence::dynamic, 1, false},
    {"sections with a remainder, longest first", 1000, GridOrder::tiles_heads_batch, Persistence::dynamic, 2, true},
    {"one section for all", 1000, GridOrder::tiles_heads_batch, Persistence::dynamic, 64, true},
    {"sections and splits", 1000, GridOrder::tiles_heads_batch, Persistence::dynamic, 2, true, 1, 2},
    {"clusters", 1024, GridOrder::tiles_heads_batch, Persistence::static_stride, 0, false, 2},
    {"clusters, an odd number of tiles", 1100, GridOrder::tiles_heads_batch, Persistence::static_stride, 0, false, 2},
    {"clusters of four", 1100, GridOrder::tiles_batch_heads, Persistence::none, 0, true, 4},
};

Case case_of(const Arrangement& s) {
  Case c;
  c.problem = {batch, nheads, nheads_k, s.seqlen, s.seqlen, 64, 64, Dtype::bf16, {}, Causal::none, -1, -1};
  return c;
}

KernelPlan plan_of(const Arrangement& s) {
  KernelPlan plan;
  plan.tile_m = 128;
  plan.num_warps = 8;
  plan.grid_order = s.order;
  plan.persistence = s.persistence;
  plan.longest_first = s.longest_first;
  plan.cluster = s.cluster;
  plan.num_splits = s.splits;
  // room for one key head more than asked for where that is no power of two
  const int heads = s.key_heads_a_section == 2 ? 3 : s.key_heads_a_section;
  plan.l2_section_bytes = heads * s.seqlen * 2 * 64 * 2;
  return plan;
}

struct Expected {
  std::int64_t batch, head;
  int q_tile, split;
};

/// The order as loops, the slowest outside.
std::vector<Expected> in_order(const Arrangement& s) {
  std::vector<int> tiles;
  for (int t = 0; std::int64_t{t} * 128 < s.seqlen; t += s.cluster) tiles.push_back(t);
  if (s.longest_first) std::reverse(tiles.begin(), tiles.end());
  std::vector<Expected> order;
  const auto tiles_of = [&](std::int64_t b, std::int64_t h) {
    for (int split = 0; split < s.splits; ++split)
      for (const int t : tiles) order.push_back({b, h, t, split});
  };
  if (s.key_heads_a_section != 0) {
    const std::int64_t members = batch * nheads, section = s.key_heads_a_section * (nheads / nheads_k);
    for (std::int64_t first = 0; first < members; first += section)
      for (int split = 0; split < s.splits; ++split)
        for (const int t : tiles)
          for (std::int64_t m = first; m < std::min(first + section, members); ++m)
            order.push_back({m / nheads, m % nheads, t, split});
  } else if (s.order == GridOrder::tiles_batch_heads) {
    for (std::int64_t h = 0; h < nheads; ++h)
      for (std::int64_t b = 0; b < batch; ++b) tiles_of(b, h);
  } else {
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < nheads; ++h) tiles_of(b, h);
  }
  return order;
}

TEST(Schedule, TasksComeInTheOrderOfTheLoops) {
  const DeviceSpec device = load_device("h200");
  for (const Arrangement& s : setups) {
    SCOPED_TRACE(s.name);
    const Case c = case_of(s);
    const KernelPlan plan = plan_of(s);
    const Grid grid(c, plan);
    const Schedule schedule(grid, device, 1);
    const std::vector<Expected> expected = in_order(s);
    ASSERT_EQ(schedule.tasks(), static_cast<std::int64_t>(expected.size()));
    EXPECT_EQ(schedule.fixed(), s.persistence == Persistence::static_stride);
    for (std::int64_t i = 0; i < schedule.tasks(); ++i) {
      const Task t = schedule.task(i);
      const Expected& e = expected[static_cast<std::size_t>(i)];
      ASSERT_TRUE(t.batch == e.batch && t.head == e.head && t.q_tile == e.q_tile && t.split == e.split)
          << "task " << i << " is batch " << t.batch << ", head " << t.head << ", query tile " << t.q_tile << ", split "
          << t.split << " and should be " << e.batch << ", " << e.head << ", " << e.q_tile << ", " << e.split;
    }
  }
}

/// Of CTAs in a row: how many GPCs they are on, and how many such rows have both sides, on average.
struct Mixture {
  double gpcs = 0, both_sides = 0;
};

Mixture mixture_of(const std::vector<std::pair<int, int>>& gpcs_and_sides, std::size_t row) {
  Mixture m;
  const std::size_t rows = gpcs_and_sides.size() / row;
  for (std::size_t i = 0; i < rows; ++i) {
    std::set<int> gpcs, sides;
    for (std::size_t j = i * row; j < (i + 1) * row; ++j)
      gpcs.insert(gpcs_and_sides[j].first), sides.insert(gpcs_and_sides[j].second);
    m.gpcs += static_cast<double>(gpcs.size()) / static_cast<double>(rows);
    m.both_sides += (sides.size() > 1 ? 1.0 : 0.0) / static_cast<double>(rows);
  }
  return m;
}

// dispatch.csv: CTAs that ask a counter as they begin, by the order of what they are given.
TEST(Schedule, FirstTilesFromACounterGoToCtasAsTheyArrive) {
  const DeviceSpec device = load_device("h200");
  const Case c = case_of({"", 1024});
  KernelPlan plan = plan_of({"", 1024});
  plan.persistence = Persistence::dynamic;
  const auto slots_of = [&](bool counts) {
    plan.counts_first_tile = counts;
    const Grid grid(c, plan);
    const Schedule schedule(grid, device, 1);
    std::vector<std::pair<int, int>> slots;
    std::set<int> sms;
    for (int i = 0; i < schedule.slots(); ++i)
      slots.emplace_back(schedule.gpc(i), schedule.side(i)), sms.insert(schedule.sm(i));
    EXPECT_EQ(sms.size(), slots.size());
    return slots;
  };
  const auto counted = slots_of(true), numbered = slots_of(false);
  constexpr std::size_t row = 4;
  double fewest = 1e9, most = 0;
  for (const char* launch : {"0", "1", "2", "3"}) {
    std::vector<std::pair<int, int>> arrived(counted.size());
    for (const MeasuredRow& r : measured_rows(ATTEST_H200_L2 "/dispatch.csv"))
      if (r.at("how") == "one_cta_an_sm" && r.at("launch") == launch)
        arrived.at(std::stoul(r.at("order"))) = {std::stoi(r.at("gpc")), std::stoi(r.at("side"))};
    const double gpcs = mixture_of(arrived, row).gpcs;
    fewest = std::min(fewest, gpcs), most = std::max(most, gpcs);
  }
  const Mixture model = mixture_of(counted, row);
  const double by_number = mixture_of(numbered, row).gpcs;
  std::printf(
      "four CTAs in a row are on %.2f GPCs (measured: %.2f to %.2f), by their numbers on %.2f; both sides %.2f\n",
      model.gpcs, fewest, most, by_number, model.both_sides);
  EXPECT_GT(model.gpcs, fewest);
  EXPECT_LT(model.gpcs, most);
  EXPECT_LT(by_number, 0.7 * fewest);
  EXPECT_NEAR(model.both_sides, 1 / 3.0, 0.1);  // as many heads of four tiles as cross twice: h200_cudnn_waves.csv
}

// As sm_places.csv has them: two SMs of a GPC, then two of the next one.
TEST(Schedule, SmsAreNumberedTpcByTpcRoundTheGpcs) {
  const DeviceSpec device = load_device("h200");
  const Case c = case_of({"", 1024});
  const KernelPlan plan = plan_of({"", 1024});
  const Grid grid(c, plan);
  const Schedule schedule(grid, device, 2);
  std::set<int> numbers;
  for (int sm = 0; sm < device.num_sms; ++sm) numbers.insert(schedule.number_on_device(sm));
  EXPECT_EQ(std::ssize(numbers), device.num_sms);
  EXPECT_EQ(*numbers.rbegin(), device.num_sms - 1);
  for (int sm = 0; sm < 16; ++sm)
    EXPECT_EQ(schedule.number_on_device(sm), sm / 2 * 16 + sm % 2);  // GPC 0's first eight TPCs
}

// docs/results/h200-l2.md: 66 SMs on a side; 16 to 18 consecutive CTAs of a plain grid share a GPC, clusters go round.
TEST(Schedule, HalfOfTheSlotsAreOnEachSideOfL2) {
  const DeviceSpec device = load_device("h200");
  for (const int cluster : {1, 2, 4}) {
    SCOPED_TRACE(cluster);
    Arrangement s{"", 1024};
    s.cluster = cluster;
    const Case c = case_of(s);
    const KernelPlan plan = plan_of(s);
    const Grid grid(c, plan);
    for (const int ctas_per_sm : {1, 2}) {
      const Schedule schedule(grid, device, ctas_per_sm);
      ASSERT_EQ(schedule.slots(), device.num_sms / cluster * ctas_per_sm);
      int far = 0, run = 0;
      std::vector<int> runs, of_sm(static_cast<std::size_t>(device.num_sms));
      for (int slot = 0; slot < schedule.slots(); ++slot) {
        if (slot > 0 && schedule.gpc(slot) != schedule.gpc(slot - 1)) runs.push_back(run), run = 0;
        ++run;
        EXPECT_EQ(schedule.side(slot), device.gpc_sides.at(static_cast<std::size_t>(schedule.gpc(slot))));
        far += schedule.side(slot);
        ++of_sm.at(static_cast<std::size_t>(schedule.sm(slot)));
      }
      EXPECT_NEAR(far, schedule.slots() / 2.0, 0.02 * schedule.slots());
      for (std::size_t i = 0; i < of_sm.size(); ++i)
        EXPECT_EQ(of_sm[i], static_cast<int>(i) % cluster == 0 ? ctas_per_sm : 0) << "of SM " << i;
      for (const int length : runs) EXPECT_TRUE(cluster == 1 ? length >= 16 && length <= 18 : length == 1) << length;
    }
  }
}

TEST(Schedule, OnePartitionHasOneSide) {
  DeviceSpec device = load_device("h200");
  device.l2_partitions = 1;
  const Case c = case_of(setups[0]);
  const KernelPlan plan = plan_of(setups[0]);
  const Grid grid(c, plan);
  const Schedule schedule(grid, device, 2);
  for (int slot = 0; slot < schedule.slots(); ++slot) EXPECT_EQ(schedule.side(slot), 0);
}

}  // namespace
}  // namespace attest
