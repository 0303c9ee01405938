#include "attest/simulator/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "tune_why.h"

namespace attest {
namespace {

constexpr std::string_view not_asked_for = "not asked for";

/// A plan that cannot be, before anything of it is simulated; an empty reason if it can.
SkippedPlan refusal(const DescribedPlan& plan, const Case& c, const DeviceSpec& device, const TuneOptions& options) {
  SkippedPlan skipped{plan, "", "", ""};
  for (const PlanCondition& asked : options.where)
    if (const std::string value = plan_text(plan.plan, *asked.field); value != asked.value) {
      skipped.reason = not_asked_for;
      skipped.detail = fmt::format("{} {} is not {}", asked.field->name, value, asked.value);
      return skipped;
    }
  if (const auto fault = plan_fault(plan.plan, c, device)) {
    skipped.reason = fault->reason;
    skipped.detail = fmt::format("{} {} {}", fault->field, fault->value, fault->limit);
    skipped.case_field = fault->case_field;
  }
  return skipped;
}

double time_of(const TunedPlan& plan) { return plan.walked_in_full ? plan.report.time_us : plan.rough_time_us; }

/// Time first; where that is the same, fewer bytes, then less spill.
bool faster(const TunedPlan& a, const TunedPlan& b) {
  if (a.walked_in_full != b.walked_in_full) return a.walked_in_full;
  if (time_of(a) != time_of(b)) return time_of(a) < time_of(b);
  const auto bytes = [](const SimulationReport& r) { return r.dram_read_bytes + r.dram_write_bytes; };
  if (bytes(a.report) != bytes(b.report)) return bytes(a.report) < bytes(b.report);
  return a.report.spill_bytes_per_thread < b.report.spill_bytes_per_thread;
}

/// What a plan asks for beside time: of plans that the model cannot tell apart the one that asks for less goes first.
auto simplicity(const TunedPlan& t) {
  const KernelPlan& p = t.plan.plan;
  const int extras = p.merged_wait + p.q_in_registers + p.lazy_rescale + p.p_in_smem + (p.cluster > 1 ? 1 : 0) +
                     (p.persistence != Persistence::none ? 1 : 0);
  return std::tuple(t.report.spill_bytes_per_thread, p.stages, extras, p.smem_bytes());
}

void try_roughly(const DescribedPlan& plan, bool named, const TuneOptions& options, TuneResult& result) {
  SkippedPlan skipped = refusal(plan, result.c, result.device, options);
  if (skipped.reason.empty()) {
    TileWalkOptions effort;
    effort.max_events = options.rough_events;
    effort.max_line_accesses = options.rough_line_accesses;
    effort.max_timeline_events = 0;
    try {
      TunedPlan tuned{plan, simulate(result.c, plan.plan, result.device, plan.name, effort), 0, false, named};
      tuned.rough_time_us = tuned.report.time_us;
      result.ranked.push_back(std::move(tuned));
      return;
    } catch (const InvalidInput& error) {
      skipped.reason = error.field() == "num_sms" ? "more CTAs at a time than are followed" : "no CTA fits an SM";
      skipped.detail = error.what();
    }
  }
  result.skipped.push_back(std::move(skipped));
}

/// Names what would have to be otherwise for a plan to be left: what was asked for, or the case, by the plan that takes
/// the least shared memory of those for which another value of a field would do, or the device.
[[noreturn]] void refuse_all(const TuneResult& result, const TuneOptions& options) {
  const std::string plans = fmt::format("none of {} plans", result.skipped.size());
  const auto named = [](const SkippedPlan& plan) { return plan.reason != not_asked_for; };
  const auto asked = std::find_if(result.skipped.begin(), result.skipped.end(), named);
  std::string wanted;
  for (const PlanCondition& condition : options.where)
    wanted += fmt::format("{}{}={}", wanted.empty() ? "" : " and ", condition.field->name, condition.value);
  if (asked == result.skipped.end()) {
    throw InvalidInput("where", wanted, fmt::format("is met by {}; {}", plans, result.skipped.front().detail));
  }
  const auto nearer = [](const SkippedPlan& a, const SkippedPlan& b) {
    if (a.case_field.empty() != b.case_field.empty()) return b.case_field.empty();
    return a.plan.plan.smem_bytes() < b.plan.plan.smem_bytes();
  };
  const SkippedPlan& nearest = *std::min_element(result.skipped.begin(), result.skipped.end(), nearer);
  if (nearest.case_field.empty())
    throw InvalidInput("device", result.device.name, fmt::format("takes {}; {}", plans, asked->detail));
  throw InvalidInput(nearest.case_field, to_json(result.c).at(nearest.case_field).dump(),
                     fmt::format("is taken by {} on {}{}; {}", plans, result.device.name,
                                 wanted.empty() ? "" : " with " + wanted, nearest.detail));
}

}  // namespace

std::map<std::string, int> TuneResult::skipped_by_reason() const {
  std::map<std::string, int> counts;
  for (const SkippedPlan& plan : skipped) ++counts[plan.reason];
  return counts;
}

TuneResult tune(const Case& c, const DeviceSpec& device, const TuneOptions& options) {
  validate(c);
  if (const auto why = unpredicted(c)) throw InvalidInput("case", *why, "cannot be tuned for");
  TuneResult result{.c = c, .device = device, .ranked = {}, .skipped = {}, .why = {}};
  for (const NamedPlan& named : named_plans)
    try_roughly({std::string(named.name), plan_named(named.name, c, device)}, true, options, result);
  for (const DescribedPlan& plan : plan_space(c, device)) try_roughly(plan, false, options, result);
  if (result.ranked.empty()) refuse_all(result, options);
  std::sort(result.ranked.begin(), result.ranked.end(), faster);
  int left = std::max(2, options.full);
  for (TunedPlan& plan : result.ranked) {
    if (!plan.named && left-- <= 0) continue;
    TileWalkOptions effort;
    effort.max_timeline_events = 0;
    plan.report = simulate(c, plan.plan.plan, device, plan.plan.name, effort);
    plan.walked_in_full = true;
  }
  std::sort(result.ranked.begin(), result.ranked.end(), faster);
  const double indistinct = result.ranked.front().report.time_us * (1 + tune_resolution);
  const auto end = std::find_if(result.ranked.begin(), result.ranked.end(), [&](const TunedPlan& plan) {
    return !plan.walked_in_full || plan.report.time_us > indistinct;
  });
  std::stable_sort(result.ranked.begin(), end, [](auto& a, auto& b) { return simplicity(a) < simplicity(b); });
  result.why = explain(result);
  return result;
}

}  // namespace attest
