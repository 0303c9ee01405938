// What holds of a prediction on every device that travels in the program, whatever its constants are: l1_turn,
// shared_waits and combine_cycles are held to an H200's counters alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "address.h"
#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "attest/simulator/report.h"
#include "attest/simulator/unfused.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

struct Asked {
  const char *plan, *fields;  // of the case
};

// Decoding in splits, by 16-byte copies and by narrow ones, in pages; gaps between rows that are read often and once;
// windows and modified scores; copies through registers; spill; bulk copies.
const Asked all_asked[] = {
    {"attest",
     R"({"batch": 2, "nheads": 16, "nheads_k": 4, "seqlen_q": 1, "seqlen_k": 8192, "headdim": 128, "num_splits": 8})"},
    {"attest", R"({"nheads": 4, "seqlen_q": 1, "seqlen_k": 3000, "headdim": 33, "num_splits": 3, "sink": true})"},
    {"attest", R"({"nheads": 8, "seqlen_q": 700, "seqlen_k": 700, "headdim": 64, "page_size": 16})"},
    {"attest",
     R"({"nheads": 8, "seqlen_q": 1024, "seqlen_k": 1024, "headdim": 128, "layout": "bshd,row_gap=4", "alibi": true})"},
    {"attest", R"({"nheads": 4, "seqlen_q": 64, "seqlen_k": 1024, "headdim": 64, "layout": "bshd,row_gap=40"})"},
    {"attest", R"({"nheads": 8, "seqlen_q": 2048, "seqlen_k": 2048, "headdim": 64, "window_left": 200,
                   "causal": "bottom-right", "softcap": 30})"},
    {"sm80-sync-copies", R"({"nheads": 8, "seqlen_q": 1024, "seqlen_k": 1024, "headdim": 128})"},
    {"sm80-spill", R"({"nheads": 8, "seqlen_q": 1024, "seqlen_k": 1024, "headdim": 128, "causal": "bottom-right"})"},
    {"fa2", R"({"nheads": 8, "seqlen_q": 1000, "seqlen_k": 1000, "headdim": 96, "causal": "top-left"})"},
    {"fa3", R"({"nheads": 8, "seqlen_q": 1024, "seqlen_k": 2048, "headdim": 128})"},
    {"cudnn", R"({"nheads": 8, "seqlen_q": 1024, "seqlen_k": 1024, "headdim": 64, "causal": "bottom-right"})"},
};

Case case_of(const Asked& asked) { return case_from_json(Json::parse(asked.fields)); }

/// None where the device has not what the plan needs.
std::optional<SimulationReport> predicted(const Asked& asked, const DeviceSpec& device) {
  const Case c = case_of(asked);
  TileWalkOptions effort;
  effort.noise = 0;
  effort.max_timeline_events = 0;
  try {
    return simulate(c, plan_named(asked.plan, c, device), device, asked.plan, effort);
  } catch (const InvalidInput&) {
    return std::nullopt;
  }
}

void expect_numbers(const Json& json) {
  const Json flat = json.flatten();
  for (const auto& [place, value] : flat.items())
    if (value.is_number_float()) {
      EXPECT_TRUE(std::isfinite(value.get<double>())) << place;
    }
}

void expect_within(const std::vector<Utilisation>& all) {
  for (const Utilisation& of : all) {
    EXPECT_GE(of.fraction, 0) << of.resource;
    EXPECT_LE(of.fraction, 1 + 1e-9) << of.resource;
  }
}

/// What DRAM may read: whole lines for each row of Q, K and V that L2 is asked for, with what lies in gaps and of other
/// heads; and of each row of O the two sectors that it fills in part.
double most_dram_reads(const SimulationReport& r) {
  const Problem& p = r.c.problem;
  const TensorAddress k = make_address(r.c.layout, r.plan.element_bytes, 0, p.batch, p.seqlen_k, p.nheads_k, p.headdim);
  constexpr int line = LineSampler::line_bytes, sector = LineSampler::sector_bytes;
  std::int64_t lines = 0;  // in which a row lies, wherever it begins
  for (std::int64_t head = 0; head < p.nheads_k; ++head)
    for (std::int64_t row = 0; row < line; ++row) {
      const std::int64_t first = k.row(0, head, row);
      lines = std::max(lines, (first + k.row_bytes - 1) / line - first / line + 1);
    }
  const double brought = static_cast<double>(lines * line) / static_cast<double>(k.row_bytes);
  return brought * std::max(r.l2_read_bytes, r.walk.first_read_bytes) +
         static_cast<double>(2 * sector * p.batch * p.nheads * p.seqlen_q);
}

class EveryDevice : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Devices, EveryDevice, testing::ValuesIn(device_names()), [](const auto& p) {
  std::string name = p.param;
  std::erase(name, '-');
  return name;
});

TEST_P(EveryDevice, PredictsWhatCanBe) {
  const DeviceSpec device = load_device(GetParam());
  DeviceSpec faster = device;
  faster.sm_clock_hz *= 1.25;
  int predictions = 0;
  for (const Asked& asked : all_asked) {
    SCOPED_TRACE(std::string(asked.plan) + " " + asked.fields);
    const auto r = predicted(asked, device);
    if (!r) continue;
    ++predictions;
    expect_numbers(to_json(*r));
    expect_within(r->utilisation);
    EXPECT_GT(r->cycles, device.kernel_launch_cycles);
    EXPECT_LE(r->dram_read_bytes, most_dram_reads(*r));
    EXPECT_LE(r->l2_read_bytes, r->sm_read_bytes);
    EXPECT_GE(r->smem_wavefronts, r->smem_wavefronts_ideal);
    if (r->plan.num_splits > 1) {
      EXPECT_GT(r->cycles, r->walk.cycles + device.kernel_launch_cycles);  // combine() comes behind
    }
    if (device.kind == DeviceKind::gpu) {
      EXPECT_LE(predicted(asked, faster)->time_us, 1.001 * r->time_us);
    }
  }
  // what needs Hopper is left out elsewhere, and what does not fit
  EXPECT_GE(predictions, device.kind != DeviceKind::gpu ? 4 : device.compute_capability >= 90 ? 11 : 6);
}

TEST_P(EveryDevice, TakesOurUnfusedKernels) {
  const DeviceSpec device = load_device(GetParam());
  if (device.kind != DeviceKind::gpu) return;
  DeviceSpec faster = device;
  faster.sm_clock_hz *= 1.25;
  for (const std::int64_t seqlen : {1, 100, 1024, 2048}) {
    Problem p;
    p.nheads = p.nheads_k = 8;
    p.seqlen_q = p.seqlen_k = seqlen;
    p.headdim = p.headdim_v = 128;
    const UnfusedCost cost = unfused_cost(p, device, own_unfused(p));
    expect_within(cost.utilisation);
    for (const UnfusedKernel& step : cost.steps) {
      expect_within(step.utilisation);
      EXPECT_TRUE(std::isfinite(step.cycles) && step.cycles > device.kernel_launch_cycles) << step.name;
    }
    EXPECT_LE(unfused_cost(p, faster, own_unfused(p)).time_us, cost.time_us) << seqlen;
  }
}

// By as much as they cost, also where as many CTAs start one after the other as 4096 SMs hold.
TEST_P(EveryDevice, TakesLongerWithLaunches) {
  DeviceSpec device = load_device(GetParam());
  if (device.kind != DeviceKind::gpu) return;
  for (const std::int64_t sms : {device.num_sms, std::int64_t{4096}}) {
    device.num_sms = sms;
    const auto r = predicted(all_asked[0], device);
    ASSERT_TRUE(r);
    ASSERT_EQ(r->kernels, 2);
    DeviceSpec free = device;
    free.kernel_launch_cycles = 0;
    EXPECT_NEAR(r->cycles - predicted(all_asked[0], free)->cycles, 2 * device.kernel_launch_cycles, 1e-6) << sms;
    free.cta_start_cycles = 0;
    const auto without = predicted(all_asked[0], free);
    EXPECT_GT(without->cycles, without->walk.cycles);  // combine() comes behind
    EXPECT_GT(predicted(all_asked[0], device)->cycles, without->cycles + 2 * device.kernel_launch_cycles) << sms;
  }
}

}  // namespace
}  // namespace attest
