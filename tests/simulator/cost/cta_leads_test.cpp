// CTAs that share an SM do not share it evenly: the one that began first goes first (cta_leads.csv, by clocks).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attest/simulator/plan_file.h"
#include "attest/simulator/report.h"
#include "attest/simulator/tile_walk.h"
#include "measured_rows.h"

namespace attest {
namespace {

Case case_of(std::int64_t batch, std::int64_t seqlen_k, std::int64_t headdim) {
  Case c;
  c.problem = {batch, 1, 1, 128, seqlen_k, headdim, headdim, Dtype::bf16, {}, Causal::none, -1, -1};
  return c;
}

KernelPlan plan_on(const char* device, std::string_view name, const Case& c) {
  return plan_named(name, c, load_device(device));
}

/// One SM, whose CTAs differ by their ages alone.
DeviceSpec one_sm() {
  DeviceSpec device = load_device("h200");
  device.num_sms = 1;
  std::ranges::fill(device.gpc_clocks, 1);
  return device;
}

/// The key tiles of such CTAs, each 3000 cycles for every CTA that shares the SM.
std::vector<TimelineEvent> timeline_of(const Case& c, const KernelPlan& plan, int ctas_per_sm) {
  TileWalkOptions options;
  options.cycles_per_key_tile = {3000, 6000, 9000};
  options.noise = 0;
  return walk_tiles(c, plan, one_sm(), ctas_per_sm, options).timeline;
}

// Two or three CTAs at a time, each of 40 key tiles; a CTA is older than those of later batch entries. Speeds
// are spread evenly about their mean.
TEST(CtaLeads, TheOldestGoesFirstUntilItEnds) {
  const Case c = case_of(5, 2560, 128);
  KernelPlan plan = plan_on("h200", "attest", c);
  plan.older_cta_lead = 170;
  for (const int ctas_per_sm : {2, 3}) {
    const std::vector<TimelineEvent> events = timeline_of(c, plan, ctas_per_sm);
    std::array<double, 5> ends{};  // of their key tiles
    for (const TimelineEvent& e : events)
      if (e.kind == TimelineEvent::Kind::finish) ends[static_cast<std::size_t>(e.batch)] = e.begin;
    std::map<std::pair<int, int>, int> tiles;  // by CTAs of the SM and how many of them are older
    for (const TimelineEvent& e : events) {
      if (e.kind != TimelineEvent::Kind::key_tile) continue;
      const auto older = static_cast<int>(
          std::count_if(ends.begin(), ends.begin() + e.batch, [&](double end) { return end > e.begin; }));
      const double lead = e.ctas == 1 ? 0 : 0.17 * (e.ctas - 1 - 2 * older) / (e.ctas - 1);
      EXPECT_NEAR(e.end - e.begin, 3000 * e.ctas / (1 + lead), 1e-6) << e.batch << " at " << e.begin;
      ++tiles[{e.ctas, older}];
    }
    EXPECT_GE(tiles.size(), ctas_per_sm == 2 ? 3 : 5);
    for (const auto& [place, count] : tiles) EXPECT_GE(count, 3) << place.first << ", " << place.second;
  }
}

// A persistent grid's CTAs keep their age from tile to tile, so one of the two ends before the other.
TEST(CtaLeads, APersistentCtaStaysTheOlder) {
  const Case c = case_of(8, 640, 128);
  KernelPlan plan = plan_on("h200", "attest", c);
  plan.persistence = Persistence::static_stride;
  plan.older_cta_lead = 100;
  std::array<int, 2> tiles{};
  for (const TimelineEvent& e : timeline_of(c, plan, 2)) {
    if (e.kind != TimelineEvent::Kind::key_tile || e.ctas == 1) continue;
    EXPECT_NEAR(e.end - e.begin, e.slot == 0 ? 6000 / 1.1 : 6000 / 0.9, 1e-6) << e.batch;
    ++tiles.at(static_cast<std::size_t>(e.slot));
  }
  EXPECT_GE(tiles[0], 35);  // of 40, in 4 CTAs' tiles
  EXPECT_GE(tiles[1], 30);
}

TEST(CtaLeads, AreThoseOfEachKernelsLongestCall) {
  EXPECT_EQ(plan_on("h200", "attest", case_of(4, 4096, 128)).older_cta_lead, 149);
  EXPECT_EQ(plan_on("h200", "attest", case_of(4, 4096, 64)).older_cta_lead, 69);
  EXPECT_EQ(plan_on("h200", "attest", case_of(4, 4096, 256)).older_cta_lead, 13);
  EXPECT_EQ(plan_on("h200", "sm80-no-swizzle", case_of(4, 4096, 128)).older_cta_lead, 2);
  EXPECT_EQ(plan_on("a100", "attest", case_of(4, 4096, 128)).older_cta_lead, 0);  // whose clocks nobody has read
}

/// As first_wave.py says: of full attention from what the younger CTA has still to do, of causal calls from slopes.
double lead_of(const MeasuredRow& row) {
  if (row.at("causal") != "0") return std::stod(row.at("mean_ns")) / std::stod(row.at("older_ns")) - 1;
  const double part = std::stod(row.at("gap_us")) / std::stod(row.at("cta_us"));
  return part / (1 - part + std::sqrt(1 - 2 * part));  // part = 2 lead / (1 + lead)^2
}

// FlashAttention 2's, of the call of each width that has most keys: the middle one of its launches.
TEST(CtaLeads, OfFlashAttentionAreThoseOfItsFirstWave) {
  struct Launches {
    double keys = 0;
    std::vector<int> leads;
  };
  std::map<std::pair<std::int64_t, bool>, Launches> longest;  // by headdim and mask
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/first_wave.csv")) {
    const int lead = std::stoi(row.at("lead"));
    EXPECT_NEAR(lead, 1000 * lead_of(row), 1) << row.at("seqlen") << ", " << row.at("headdim");
    auto& [keys, leads] = longest[{std::stoll(row.at("headdim")), row.at("causal") != "0"}];
    const double of_row = std::stod(row.at("seqlen"));
    if (of_row > keys) keys = of_row, leads.clear();
    if (of_row == keys) leads.push_back(lead);
  }
  EXPECT_EQ(longest.size(), 20);
  for (auto& [of, call] : longest) {
    const auto [headdim, causal] = of;
    std::vector<int>& leads = call.leads;
    EXPECT_EQ(leads.size(), causal ? 9 : 3) << headdim;
    std::ranges::nth_element(leads, leads.begin() + static_cast<std::ptrdiff_t>(leads.size() / 2));
    Case c = case_of(4, 4096, headdim);
    c.problem.causal = causal ? Causal::bottom_right : Causal::none;
    const int within = headdim == 120 ? 18 : 5;  // headdims that have one kernel
    EXPECT_NEAR(plan_on("h200", "fa2", c).older_cta_lead, std::max(0, leads[leads.size() / 2]), within) << headdim;
  }
}

TEST(CtaLeads, OfTheFileAreTheFittedTimes) {
  int rows = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_MEASURED "/cta_leads.csv")) {
    const double older = std::stod(row.at("older_us")), younger = std::stod(row.at("younger_us"));
    EXPECT_NEAR(std::stoi(row.at("lead")), 1000 * (younger - older) / (younger + older), 1.5) << row.at("case");
    ++rows;
  }
  EXPECT_GE(rows, 40);
}

}  // namespace
}  // namespace attest
