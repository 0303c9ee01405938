#include "tune_why.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "units.h"

namespace attest {
namespace {

std::string word(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// "stages 2 instead of 1": the fields in which a plan differs from another, most telling first.
std::string differences(const KernelPlan& plan, const KernelPlan& other) {
  std::string text;
  int left = 6;
  for (const PlanField& field : plan_fields()) {
    const auto mine = plan_value(plan, field), theirs = plan_value(other, field);
    if (mine == theirs || field.kind == PlanField::Kind::known) continue;
    if (left-- == 0) return text + ", ...";
    text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", field.name, word(theirs), word(mine));
  }
  return text.empty() ? "nothing that the plan says" : text;
}

struct Consequence {
  double ratio;  // the other's figure over the winner's
  std::string text;
};

/// What costs the other plan time, the largest difference first; what it has less of is no reason.
std::string consequences(const SimulationReport& r, const SimulationReport& other) {
  const auto dram = [](const SimulationReport& x) { return x.dram_read_bytes + x.dram_write_bytes; };
  const auto warps = [](const SimulationReport& x) { return double(x.ctas_per_sm) * x.plan.num_warps; };
  std::vector<Consequence> found;
  const auto more = [&](const char* what, double mine, double theirs) {
    if (theirs > 1.03 * mine && mine > 0)
      found.push_back({theirs / mine, fmt::format("{:.0f}% more {}", 100 * (theirs / mine - 1), what)});
  };
  more("shared-memory wavefronts", r.smem_wavefronts, other.smem_wavefronts);
  more("bytes from L2", r.l2_read_bytes, other.l2_read_bytes);
  more("DRAM bytes", dram(r), dram(other));
  more("arithmetic on masked keys and padding", r.flops_executed, other.flops_executed);
  more("exponentials", r.exp_count, other.exp_count);
  if (warps(other) < warps(r))
    found.push_back({warps(r) / warps(other), fmt::format("{:.0f} instead of {:.0f} warps an SM to overlap (limit: {})",
                                                          warps(other), warps(r), other.occupancy.limit)});
  if (other.spill_bytes_per_thread > r.spill_bytes_per_thread)
    found.push_back({2.0, fmt::format("{} instead of {} bytes spilled a thread and key tile",
                                      other.spill_bytes_per_thread, r.spill_bytes_per_thread)});
  if (other.walk.busy_fraction < 0.97 * r.walk.busy_fraction)
    found.push_back({r.walk.busy_fraction / other.walk.busy_fraction,
                     fmt::format("CTA slots in use {} of the time instead of {}",
                                 units::percent(other.walk.busy_fraction), units::percent(r.walk.busy_fraction))});
  std::stable_sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.ratio > b.ratio; });
  std::string text;
  for (const Consequence& c : found) text += fmt::format("{}{}", text.empty() ? "" : "; ", c.text);
  return text.empty() ? "no figure sets it apart" : text;
}

std::string compare(const TunedPlan& winner, const TunedPlan& other) {
  const double ratio = other.report.time_us / winner.report.time_us;
  // below the noise of the walk two plans are the same to this model
  const std::string how = ratio < 1.005 ? "is as fast within what the model resolves, and asks for more"
                                        : fmt::format("takes {:.2f} times as long", ratio);
  return fmt::format("{} {}: {} (bound by {}). It has {}.", other.plan.name, how,
                     consequences(winner.report, other.report), other.report.bound,
                     differences(winner.plan.plan, other.plan.plan));
}

}  // namespace

std::vector<std::string> explain(const TuneResult& result) {
  const TunedPlan& winner = result.winner();
  const SimulationReport& r = winner.report;
  std::string busy;
  for (const Utilisation& u : r.utilisation)
    busy += fmt::format("{}{} {:.0f}%", busy.empty() ? "" : ", ", u.resource, 100 * u.fraction);
  std::vector<std::string> why = {
      fmt::format("{} wins with {}, bound by {}: {}.", winner.plan.name, units::time(r.time_us), r.bound, busy)};
  if (result.ranked.size() > 1 && result.ranked[1].walked_in_full) why.push_back(compare(winner, result.ranked[1]));
  for (std::size_t i = 2; i < result.ranked.size(); ++i)
    if (result.ranked[i].named) why.push_back(compare(winner, result.ranked[i]));
  return why;
}

}  // namespace attest
