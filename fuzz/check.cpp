#include "attest/fuzz/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/in_flight.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

void add_differences(const char* channel, const Tensor& value, const Tensor& expected, const Tensor& bound,
                     std::vector<Difference>& out) {
  const auto& e = value.extents;
  std::size_t at = 0;
  for (std::int64_t a = 0; a < e[0]; ++a)
    for (std::int64_t b = 0; b < e[1]; ++b)
      for (std::int64_t c = 0; c < e[2]; ++c)
        for (std::int64_t d = 0; d < e[3]; ++d, ++at) {
          const double error = std::abs(value.values[at] - expected.values[at]);
          if (value.values[at] == expected.values[at]) continue;
          const bool infinite_for_nan = std::isinf(bound.values[at]) && std::isinf(value.values[at]);
          if (std::isnan(expected.values[at]) && (std::isnan(value.values[at]) || infinite_for_nan)) continue;
          const double ratio = std::isfinite(error) && bound.values[at] > 0 ? error / bound.values[at]
                                                                            : std::numeric_limits<double>::infinity();
          out.push_back({channel, {a, b, c, d}, value.values[at], expected.values[at], bound.values[at], ratio});
        }
}

std::vector<Difference> worst_differences(Trial& trial, std::int64_t count) {
  std::vector<Difference> all;
  const Outputs& outputs = trial.run().outputs;
  const Truth& truth = trial.truth();
  add_differences("o", outputs.o, truth.forward.o, truth.o_bound, all);
  if (outputs.lse) add_differences("lse", *outputs.lse, truth.forward.lse, truth.lse_bound, all);
  if (outputs.gradients) {
    const Gradients &got = *outputs.gradients, &right = truth.gradients, &bound = truth.gradient_bounds;
    add_differences("dq", got.dq, right.dq, bound.dq, all);
    add_differences("dk", got.dk, right.dk, bound.dk, all);
    add_differences("dv", got.dv, right.dv, bound.dv, all);
    if (trial.problem().sink) add_differences("dsink", got.dsink, right.dsink, bound.dsink, all);
    if (trial.problem().bias != Bias::none) add_differences("dbias", got.dbias, right.dbias, bound.dbias, all);
  }
  const auto wanted = std::min<std::size_t>(all.size(), static_cast<std::size_t>(count));
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted), all.end(),
                    [](const Difference& a, const Difference& b) { return a.error_over_budget > b.error_over_budget; });
  all.resize(wanted);
  return all;
}

MaskReport read_mask(Trial& trial, const CheckOptions& options) {
  const Case& c = options.the_case;
  const RecoveredMask mask = recover_mask(trial, options.mask_options);
  const MaskComparison comparison = compare_mask(c.problem, mask);
  return {comparison.same(), to_text(options.kernel, mask, comparison), to_json(mask, comparison).dump(),
          mask_svg(options.kernel, c, mask, comparison, trial.kernel().numerics(c).smallest_tile)};
}

// The properties that apply and have no verdict: what comes after a crash, a hang or an interruption.
std::vector<std::string> not_judged(const CheckOptions& options, const CheckResult& result) {
  std::vector<std::string> names;
  for (const Property& property : properties()) {
    if (!options.property.empty() && options.property != property.name) continue;
    const bool judged = std::any_of(result.verdicts.begin(), result.verdicts.end(),
                                    [&](const auto& verdict) { return verdict.first == property.name; });
    if (!judged && property.applies(options.the_case)) names.emplace_back(property.name);
  }
  return names;
}

}  // namespace

void CheckOptions::validate() const {
  attest::validate(the_case);
  if (!property.empty()) property_named(property);
  truth_named(truth);
  if (!(hang_seconds >= 0 && hang_seconds <= 1e7))
    throw InvalidInput("timeout", fmt::format("{} s", hang_seconds), "is outside 0 to 10^7 s");
  if (diffs < 0) throw InvalidInput("diffs", fmt::format("{}", diffs), "is below 0");
  if (mask) validate_mask(the_case.problem, mask_options);
}

const Property& first_property(const CheckOptions& options) {
  return options.property.empty() ? properties().front() : property_named(options.property);
}

CheckResult run_check(Kernel& kernel, const CheckOptions& options, const EachVerdict& each) {
  CheckResult result;
  const auto add = [&](const Property& property, const Verdict& verdict) {
    result.verdicts.emplace_back(property.name, verdict);
    if (each) each(property, verdict);
  };
  // What the kernel throws outside the properties is held against it under the one that asks the same of it, once.
  const auto hold_against = [&](const Property& property, const KernelThrew& error) {
    for (const auto& [name, verdict] : result.verdicts)
      if (name == property.name && verdict.status == Status::crashed) return;
    add(property, thrown(error));
  };
  try {
    result.unsupported = kernel.unsupported(options.the_case);
  } catch (const KernelThrew& error) {
    hold_against(first_property(options), error);
    return result;
  }
  if (result.unsupported || options.dry_run) return result;
  ForwardBuffers buffers;
  Trial trial(kernel, buffers, options.the_case, truth_named(options.truth));
  for (const Property& property : properties()) {
    const bool wanted = options.property.empty() || options.property == property.name;
    if (wanted && property.applies(options.the_case)) add(property, judge(property, trial));
  }
  if (options.mask) {
    name_in_flight("mask");
    try {
      result.mask = read_mask(trial, options);
    } catch (const KernelThrew& error) {
      hold_against(property_named("mask"), error);
    }
  }
  if (options.diffs > 0) {
    name_in_flight("reference");
    try {
      result.differences = worst_differences(trial, options.diffs);
    } catch (const KernelThrew& error) {
      hold_against(property_named("reference"), error);
    }
  }
  return result;
}

nlohmann::ordered_json to_json(const CheckOptions& options, const CheckResult& result) {
  nlohmann::ordered_json json;
  json["schema"] = "attest/check/1";
  json["kernel"] = options.kernel;
  json["case"] = to_json(options.the_case);
  json["truth"] = options.truth;
  json["dry_run"] = options.dry_run;
  json["interrupted"] = result.interrupted;
  if (result.unsupported) json["unsupported"] = *result.unsupported;
  json["failed"] = std::count_if(result.verdicts.begin(), result.verdicts.end(),
                                 [](const auto& v) { return v.second.status != Status::passed; });
  json["verdicts"] = nlohmann::ordered_json::array();
  for (const auto& [property, verdict] : result.verdicts) {
    nlohmann::ordered_json& entry = json["verdicts"].emplace_back();
    entry["property"] = property;
    const nlohmann::ordered_json body = to_json(verdict);
    for (const auto& [key, value] : body.items()) entry[key] = value;
    if (verdict.status != Status::passed) entry["repro"] = repro_line(options.kernel, property, options.the_case);
  }
  if (result.mask) json["mask"] = nlohmann::ordered_json::parse(result.mask->json);
  if (!result.unsupported && !options.dry_run) json["not_judged"] = not_judged(options, result);
  if (options.diffs > 0) {
    json["diffs"] = nlohmann::ordered_json::array();
    for (const Difference& d : result.differences)
      json["diffs"].push_back({{"channel", d.channel},
                               {"element", d.element},
                               {"value", d.value},
                               {"expected", d.expected},
                               {"bound", d.bound},
                               {"error_over_budget", d.error_over_budget}});
  }
  return json;
}

std::string to_text(const CheckOptions& options, const CheckResult& result) {
  std::string text = fmt::format("{} on {}\n", options.kernel, command_line(options.the_case));
  if (result.unsupported) return text + fmt::format("unsupported: {}\n", *result.unsupported);
  if (options.dry_run) {
    text += "would be put to:";
    for (const Property& property : properties())
      if ((options.property.empty() || options.property == property.name) && property.applies(options.the_case))
        text += fmt::format(" {}", property.name);
    if (options.mask) {
      const std::int64_t launches = mask_launches(options.the_case, true);
      text += fmt::format(" mask ({} launch{})", launches, launches == 1 ? "" : "es");
    }
    return text + "\n";
  }
  if (result.verdicts.empty() && !result.interrupted)
    text += fmt::format("property {} does not apply to this case\n", options.property);
  for (const auto& [property, verdict] : result.verdicts) {
    text += fmt::format("  {:<16} {:<13}", property, to_string(verdict.status));
    if (verdict.status != Status::passed)
      text += describe(verdict);
    else if (!verdict.rule.empty())
      text += fmt::format("{} of the budget ({})", ratio_text(verdict.error_over_budget), verdict.rule);
    while (text.back() == ' ') text.pop_back();
    text += "\n";
  }
  if (result.mask) text += "  " + result.mask->text;
  const std::vector<std::string> left = not_judged(options, result);
  if (!left.empty())
    text += fmt::format("  not judged{}: {}\n", result.interrupted ? ", interrupted" : "", fmt::join(left, ", "));
  for (const Difference& d : result.differences)
    text += fmt::format("  {}[{}, {}, {}, {}] is {:.9g}, should be {:.9g}, bound {:.3g}, {} of it\n", d.channel,
                        d.element[0], d.element[1], d.element[2], d.element[3], d.value, d.expected, d.bound,
                        ratio_text(d.error_over_budget));
  return text;
}

}  // namespace attest
