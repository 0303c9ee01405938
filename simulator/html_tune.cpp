#include "attest/simulator/html_tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cost_differences.h"
#include "html_page.h"
#include "units.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

/// What a plan does beside its tiles, in words.
std::string extras(const KernelPlan& p) {
  std::string text;
  const std::pair<bool, const char*> words[] = {{p.matrix_kind == MatrixKind::wgmma, "wgmma"},
                                                {p.merged_wait, "one wait a key tile"},
                                                {p.q_in_registers, "Q in registers"},
                                                {p.lazy_rescale, "lazy rescale"},
                                                {p.p_in_smem, "P in shared memory"},
                                                {p.cluster > 1, "clusters"},
                                                {p.persistence == Persistence::static_stride, "persistent"},
                                                {p.persistence == Persistence::dynamic, "persistent, dynamic"}};
  for (const auto& [said, word] : words)
    if (said) text += fmt::format("{}{}", text.empty() ? "" : ", ", word);
  return text;
}

/// What a person calls a plan: one of ours by its name, another by what it is.
std::string called(const TunedPlan& t) {
  if (t.named) return fmt::format("the plan {}", t.plan.name);
  const std::string more = extras(t.plan.plan);
  return more.empty() ? page_tiles(t.plan.plan) : fmt::format("{}, {}", page_tiles(t.plan.plan), more);
}

/// "attest takes 1.02 × as long (33% more shared-memory wavefronts)".
std::string against(const TunedPlan& winner, const TunedPlan& other) {
  const double ratio = other.report.time_us / winner.report.time_us;
  if (ratio < 1 + tune_resolution) return fmt::format("{} is as fast", other.plan.name);
  const auto costs = extra_costs(winner.report, other.report);
  return fmt::format("{} takes {} as long{}", other.plan.name, page_times(ratio),
                     costs.empty() ? "" : fmt::format(" ({})", costs.front()));
}

std::string headline(const TuneResult& result) {
  const TunedPlan& winner = result.winner();
  const SimulationReport& r = winner.report;
  if (r.cycles == 0) return "There is nothing to compute: no query sees a key, and every plan is as fast.";
  std::string text =
      fmt::format("The fastest takes {}: {}; bound by {}. ", page_time(r.time_us), called(winner), page_bound(r.bound));
  const auto& ranked = result.ranked;
  const auto slower = std::find_if(ranked.begin() + 1, ranked.end(), [&](const TunedPlan& t) {
    return t.walked_in_full && t.report.time_us >= r.time_us * (1 + tune_resolution);
  });
  if (const auto equal = slower - ranked.begin() - 1; equal > 0)
    text += fmt::format("{} more plan{} as fast within what the model resolves and {} for more. ", equal,
                        equal == 1 ? " is" : "s are", equal == 1 ? "asks" : "ask");
  std::string others;
  const auto add = [&](const TunedPlan& t) { others += (others.empty() ? "" : "; ") + against(winner, t); };
  if (slower != ranked.end() && !slower->named) add(*slower);
  for (auto t = ranked.begin() + 1; t != ranked.end(); ++t)
    if (t->named) add(*t);
  return others.empty() ? text : fmt::format("{}Beside it, {}.", text, others);
}

Json entry(const TunedPlan& t, std::size_t rank) {
  const KernelPlan& p = t.plan.plan;
  const SimulationReport& r = t.report;
  return {{"rank", rank},
          {"name", t.plan.name},
          {"named", t.named},
          {"full", t.walked_in_full},
          {"tile_m", p.tile_m},
          {"tile_n", p.tile_n},
          {"warps", p.warps()},
          {"stages", p.stages},
          {"extras", extras(p)},
          {"time_us", r.time_us},
          {"rough_time_us", t.rough_time_us},
          {"dram_bytes", r.dram_read_bytes + r.dram_write_bytes},
          {"l2_read_bytes", r.l2_read_bytes},
          {"smem_bytes", r.smem_bytes_per_cta},
          {"registers", r.registers_per_thread},
          {"spill_bytes", r.spill_bytes_per_thread},
          {"conflicts", r.smem_wavefronts_ideal == 0 ? 1 : r.smem_wavefronts / r.smem_wavefronts_ideal},
          {"ctas", r.ctas_per_sm},
          {"limit", r.occupancy.limit},
          {"bound", r.bound}};
}

}  // namespace

Json tune_page_data(const TuneResult& result, int top) {
  Json plans = Json::array(), skipped = Json::array();
  for (std::size_t i = 0; i < result.ranked.size(); ++i) plans.push_back(entry(result.ranked[i], i + 1));
  for (const auto& [reason, count] : result.skipped_by_reason()) {
    const auto first = std::find_if(result.skipped.begin(), result.skipped.end(),
                                    [&, &why = reason](const SkippedPlan& plan) { return plan.reason == why; });
    skipped.push_back({{"reason", reason}, {"count", count}, {"example", first->plan.name}, {"detail", first->detail}});
  }
  return {{"command", command_line(result.c)},
          {"device", {{"name", result.device.name}}},
          {"cores", result.device.kind == DeviceKind::cube_vector},
          {"flops", result.winner().report.flops},
          {"max_warps_per_sm", result.device.max_warps_per_sm},
          {"top", top},
          {"plans", std::move(plans)},
          {"why", result.why},
          {"skipped", std::move(skipped)}};
}

std::string html_tune(const TuneResult& result, int top) {
  return html_page({.title = fmt::format("attest tune: {} on {}", page_words(result.c), result.device.name),
                    .heading = page_words(result.c),
                    .place = fmt::format("{}: {} plans tried, {} of them fit", result.device.description,
                                         result.ranked.size() + result.skipped.size(), result.ranked.size()),
                    .headline = headline(result)},
                   "tune_sections", {"table", "tune_charts", "tune_tables", "tune"}, tune_page_data(result, top));
}

}  // namespace attest
