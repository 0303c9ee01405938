#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "attest/simulator/sweep.h"
#include "attest/simulator/tune.h"
#include "units.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

Json entry(const TunedPlan& plan, std::size_t rank) {
  Json json = {{"rank", rank},
               {"name", plan.plan.name},
               {"named", plan.named},
               {"walked_in_full", plan.walked_in_full},
               {"rough_time_us", plan.rough_time_us}};
  json.update(figures_json(plan.report));
  Json utilisation = Json::object();
  for (const Utilisation& u : plan.report.utilisation) utilisation[std::string(u.resource)] = u.fraction;
  json["utilisation"] = std::move(utilisation);
  json["plan"] = to_json(plan.plan);
  return json;
}

}  // namespace

Json to_json(const TuneResult& result, int top) {
  Json json = {{"schema", "attest/tune/1"}, {"case", to_json(result.c)}, {"device", result.device.name}};
  json["plans"] = result.ranked.size() + result.skipped.size();
  json["plans_that_fit"] = result.ranked.size();
  json["walked_in_full"] =
      std::count_if(result.ranked.begin(), result.ranked.end(), [](const TunedPlan& p) { return p.walked_in_full; });
  json["why"] = result.why;
  Json ranked = Json::array(), others = Json::array(), skipped = Json::array();
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    const TunedPlan& plan = result.ranked[i];
    if (i < static_cast<std::size_t>(top) || plan.named)
      ranked.push_back(entry(plan, i + 1));
    else
      others.push_back({{"rank", i + 1},
                        {"name", plan.plan.name},
                        {"time_us", plan.report.time_us},
                        {"walked_in_full", plan.walked_in_full},
                        {"bound", plan.report.bound}});
  }
  for (const SkippedPlan& plan : result.skipped)
    skipped.push_back({{"name", plan.plan.name}, {"reason", plan.reason}, {"detail", plan.detail}});
  json["ranked"] = std::move(ranked);
  json["others"] = std::move(others);
  json["skipped"] = {{"by_reason", result.skipped_by_reason()}, {"plans", std::move(skipped)}};
  return json;
}

std::string to_table(const TuneResult& result, int top) {
  std::string text = fmt::format("{:>4}  {:<42}{:>10}{:>8}{:>11}{:>11}{:>10}{:>6}{:>7}{:>6}  {}\n", "", "plan", "time",
                                 "", "DRAM", "from L2", "conflicts", "regs", "spill", "CTAs", "bound");
  const double best = result.winner().report.time_us;
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    const TunedPlan& plan = result.ranked[i];
    if (i >= static_cast<std::size_t>(top) && !plan.named) continue;
    const SimulationReport& r = plan.report;
    text += fmt::format("{:>4}  {:<42}{:>10}{:>7.2f}x{:>11}{:>11}{:>9.2f}x{:>6}{:>7}{:>6}  {}\n", i + 1, plan.plan.name,
                        units::time(r.time_us), best == 0 ? 1 : r.time_us / best,
                        units::bytes(r.dram_read_bytes + r.dram_write_bytes), units::bytes(r.l2_read_bytes),
                        r.smem_wavefronts_ideal == 0 ? 1 : r.smem_wavefronts / r.smem_wavefronts_ideal,
                        r.registers_per_thread, r.spill_bytes_per_thread, r.ctas_per_sm, r.bound);
  }
  text += fmt::format("\n{} plans, {} of them fit", result.ranked.size() + result.skipped.size(), result.ranked.size());
  for (const auto& [reason, count] : result.skipped_by_reason())
    text += fmt::format("; skipped: {} ({})", count, reason);
  text += "\n\n";
  for (const std::string& sentence : result.why) text += sentence + "\n";
  return text;
}

}  // namespace attest
