#include "tune_why.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cost_differences.h"
#include "units.h"

namespace attest {
namespace {

std::string word(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// `plan` with the columns that 0 stands for.
KernelPlan spelled_out(KernelPlan plan) {
  const int columns = plan.columns(Operand::q), columns_v = plan.columns(Operand::v);
  plan.padded_headdim = columns, plan.padded_headdim_v = columns_v;
  return plan;
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

std::string joined(const std::vector<std::string>& costs) {
  std::string text;
  for (const std::string& cost : costs) text += fmt::format("{}{}", text.empty() ? "" : "; ", cost);
  return text.empty() ? "no figure sets it apart" : text;
}

std::string compare(const TunedPlan& winner, const TunedPlan& other) {
  const double ratio = other.report.time_us / winner.report.time_us;
  // below the noise of the walk two plans are the same to this model
  const std::string how = ratio < 1 + tune_resolution ? "is as fast within what the model resolves, and asks for more"
                                                      : fmt::format("takes {:.2f} times as long", ratio);
  return fmt::format("{} {}: {} (bound by {}). It has {}.", other.plan.name, how,
                     joined(extra_costs(winner.report, other.report)), other.report.bound,
                     differences(spelled_out(winner.plan.plan), spelled_out(other.plan.plan)));
}

}  // namespace

std::vector<std::string> explain(const TuneResult& result) {
  const TunedPlan& winner = result.winner();
  const SimulationReport& r = winner.report;
  if (r.cycles == 0) return {"There is nothing to compute: no query sees a key, and every plan is as fast."};
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
