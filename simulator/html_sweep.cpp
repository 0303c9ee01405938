#include "attest/simulator/html_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "cost_differences.h"
#include "html_page.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

constexpr double noticeable = 1.1;
constexpr std::size_t most_steps = 8;

/// The points that have a prediction: by value where these are numbers, else in the order that was asked for.
std::vector<const SweepPoint*> predicted(const std::vector<SweepPoint>& points) {
  std::vector<const SweepPoint*> found;
  for (const SweepPoint& point : points)
    if (point.report) found.push_back(&point);
  const bool numbers = std::all_of(found.begin(), found.end(), [](auto* p) { return p->value.number.has_value(); });
  if (numbers)
    std::sort(found.begin(), found.end(), [](auto* a, auto* b) { return *a->value.number < *b->value.number; });
  return found;
}

/// A whole number with commas, anything else as it is.
std::string grouped(const SweepValue& value) {
  std::string text = value.text;
  if (!value.number || text.find_first_not_of("-0123456789") != std::string::npos) return text;
  for (std::ptrdiff_t at = std::ptrdiff_t(text.size()) - 3; at > (text[0] == '-' ? 1 : 0); at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

/// The stretches of values that one resource bounds: "by shared memory up to 8,192, then by the tensor cores"; or,
/// where they are many or the values have no order, how often each does.
std::string bounds(const std::vector<const SweepPoint*>& points, bool ordered) {
  std::string stretches, counts;
  int num_stretches = 0;
  std::map<std::string, int> times_bound;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::string& bound = points[i]->report->bound;
    ++times_bound[bound];
    const bool last = i + 1 == points.size();
    if (!last && points[i + 1]->report->bound == bound) continue;
    ++num_stretches;
    stretches += fmt::format("{}by {}{}", stretches.empty() ? "" : ", then ", page_bound(bound),
                             last ? "" : fmt::format(" up to {}", grouped(points[i]->value)));
  }
  if (num_stretches == 1 || (ordered && num_stretches <= 3)) return stretches;
  for (const auto& [bound, times] : times_bound)
    counts += fmt::format("{}by {} at {} of {}", counts.empty() ? "" : ", ", page_bound(bound), times, points.size());
  return counts;
}

std::string step_words(const SweepAxis& axis, const SweepStep& step) {
  const bool grows = step.ratio > 1;
  std::string text = fmt::format("From {} {} to {} time {} {}", axis.field, grouped(step.from), grouped(step.to),
                                 grows ? "grows" : "falls to", page_times(step.ratio));
  if (axis.of == SweepAxis::Of::case_field && !step.plan_change.empty())
    text += fmt::format(", where the plan goes {}", step.plan_change);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, step.costs.size()); ++i)
    text += (i == 0 ? (grows ? ": " : fmt::format("; {} has ", grouped(step.from))) : "; ") + step.costs[i];
  return text;
}

/// "from 128 × 64 to 64 × 64 tiles, from 4 to 8 warps"; empty if the plan stays.
std::string plan_change(const KernelPlan& from, const KernelPlan& to) {
  std::string text;
  const auto change = [&](const std::string& before, const std::string& after, const char* what) {
    if (before != after) text += fmt::format("{}from {} to {} {}", text.empty() ? "" : ", ", before, after, what);
  };
  const auto tile = [](const KernelPlan& p) { return fmt::format("{} × {}", p.tile_m, p.tile_n); };
  change(tile(from), tile(to), "tiles");
  change(fmt::format("{}", from.warps()), fmt::format("{}", to.warps()), "warps");
  change(fmt::format("{}", from.stages), fmt::format("{}", to.stages), "stages");
  return text;
}

std::string headline(const SweepAxis& axis, const std::vector<SweepPoint>& all) {
  const auto points = predicted(all);
  const SweepPoint &first = *points.front(), &last = *points.back();
  const auto [least, most] = std::minmax_element(
      points.begin(), points.end(), [](auto* a, auto* b) { return a->report->time_us < b->report->time_us; });
  std::string text;
  if (axis.of != SweepAxis::Of::case_field || !axis.numeric())
    text =
        fmt::format("Fastest at {} {}: {}. Slowest at {}: {}. ", axis.field, grouped((*least)->value),
                    page_time((*least)->report->time_us), grouped((*most)->value), page_time((*most)->report->time_us));
  else
    text = fmt::format("{} at {} {}, {} at {}; unfused takes {} and {} as long. ", page_time(first.report->time_us),
                       axis.field, grouped(first.value), page_time(last.report->time_us), grouped(last.value),
                       page_times(first.report->unfused_speedup), page_times(last.report->unfused_speedup));
  text += fmt::format("Bound {}.", bounds(points, axis.numeric()));
  const auto steps = standing_out(all);
  const auto up = std::find_if(steps.begin(), steps.end(), [](const SweepStep& s) { return s.ratio > 1; });
  if (up != steps.end()) text += fmt::format(" {}.", step_words(axis, *up));
  if (points.size() < all.size())
    text += fmt::format(" {} of {} values cannot be predicted.", all.size() - points.size(), all.size());
  return text;
}

/// "seqlen from 512 to 8,192, 5 values", "dtype fp16, bf16".
std::string range_words(const SweepAxis& axis) {
  const auto& values = axis.values;
  if (axis.numeric() && values.size() > 1) {
    const auto [least, most] =
        std::minmax_element(values.begin(), values.end(), [](auto& a, auto& b) { return *a.number < *b.number; });
    return fmt::format("{} from {} to {}, {} values", axis.field, grouped(*least), grouped(*most), values.size());
  }
  constexpr std::size_t most_named = 6;
  std::string names;
  for (std::size_t i = 0; i < std::min(most_named, values.size()); ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", grouped(values[i]));
  if (values.size() > most_named) names += fmt::format(" and {} more", values.size() - most_named);
  return fmt::format("{} {}", axis.field, names);
}

}  // namespace

std::vector<SweepStep> standing_out(const std::vector<SweepPoint>& all) {
  auto points = predicted(all);
  std::erase_if(points, [](const SweepPoint* point) { return point->report->time_us <= 0; });
  const bool numbers = std::all_of(points.begin(), points.end(), [](auto* p) { return p->value.number.has_value(); });
  if (points.size() < 4 || !numbers) return {};  // nothing to stand out from
  std::vector<double> distance, growth, exponents;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double from = *points[i - 1]->value.number, to = *points[i]->value.number;
    distance.push_back(*points.front()->value.number > 0 ? std::log(to / from) : to - from);
    growth.push_back(std::log(points[i]->report->time_us / points[i - 1]->report->time_us));
    exponents.push_back(growth.back() / distance.back());
  }
  // that of the whole sweep: a zigzag's steps have no middle
  const double usual =
      std::accumulate(growth.begin(), growth.end(), 0.0) / std::accumulate(distance.begin(), distance.end(), 0.0);
  struct Found {
    double expected, surprise;  // logarithms
    std::size_t at;
  };
  std::vector<Found> found;
  for (std::size_t i = 0; i < growth.size(); ++i) {
    // Beside the usual step and beside what its neighbours lead to: a curve that bends has no steps, and one step makes
    // none of those around it.
    const bool first = i == 0, last = i + 1 == growth.size();
    if ((first || last) && *points.front()->value.number > 0 && distance[i] > std::log(noticeable))
      continue;  // may be a bend
    const double around = (exponents[first ? 1 : i - 1] + exponents[last ? i - 1 : i + 1]) / 2;
    const auto [low, high] = std::minmax(usual, around);
    const double expected = std::clamp(growth[i], low * distance[i], high * distance[i]);
    const double surprise = growth[i] - expected;
    if (std::abs(surprise) > std::log(noticeable)) found.push_back({expected, surprise, i});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](auto& a, auto& b) { return std::abs(a.surprise) > std::abs(b.surprise); });
  if (found.size() > most_steps) found.resize(most_steps);
  std::vector<SweepStep> steps;
  for (const auto& [expected, surprise, i] : found) {
    const SweepPoint &from = *points[i], &to = *points[i + 1];
    // figures of much larger cases are compared beside that growth, others as they are
    const double grown =
        distance[i] > std::log(noticeable) && *points.front()->value.number > 0 ? std::exp(expected) : 1;
    steps.push_back({from.value, to.value, std::exp(growth[i]), plan_change(from.report->plan, to.report->plan),
                     surprise > 0 ? extra_costs(*from.report, *to.report, grown)
                                  : extra_costs(*to.report, *from.report, 1 / grown)});
  }
  return steps;
}

Json sweep_page_data(const SweepAxis& axis, const std::vector<SweepPoint>& points) {
  Json shown = Json::array(), steps = Json::array();
  std::set<double> launch_us;
  for (const SweepPoint& point : points) {
    Json entry = {{"value", point.value.text}, {"refused", point.refused}};
    if (axis.numeric()) entry["value"] = to_json(point.value);
    if (point.report) {
      const SimulationReport& r = *point.report;
      entry["cores"] = r.device.kind == DeviceKind::cube_vector;
      entry.update(figures_json(r));
      entry["dram_bytes"] = r.dram_read_bytes + r.dram_write_bytes;
      entry["tile"] = fmt::format("{} × {}", r.plan.tile_m, r.plan.tile_n);
      entry["warps"] = r.plan.warps();
      entry["stages"] = r.plan.stages;
      entry["launched_time_us"] = r.time_us + r.kernels * 1e6 * r.device.launch_overhead_seconds;
      launch_us.insert(1e6 * r.device.launch_overhead_seconds);
    }
    shown.push_back(std::move(entry));
  }
  auto in_order = standing_out(points);
  std::sort(in_order.begin(), in_order.end(), [](auto& a, auto& b) { return *a.from.number < *b.from.number; });
  for (const SweepStep& step : in_order) steps.push_back(step_words(axis, step) + ".");
  const SimulationReport& first = *predicted(points).front()->report;
  return {{"field", axis.field},
          {"numeric", axis.numeric()},
          {"cores", std::all_of(points.begin(), points.end(),
                                [](auto& p) { return !p.report || p.report->device.kind == DeviceKind::cube_vector; })},
          {"command", command_line(first.c)},
          {"launch_us", launch_us},  // of each device that was predicted for
          {"points", std::move(shown)},
          {"steps", std::move(steps)}};
}

std::string html_sweep(const SweepAxis& axis, const std::vector<SweepPoint>& points) {
  const SimulationReport& first = *predicted(points).front()->report;
  const std::string range = range_words(axis);
  return html_page({.title = fmt::format("attest sweep: {} on {}", range, first.device.name),
                    .heading = range,
                    .place = fmt::format("{}, plan {}. At {} {}: {}", first.device.description,
                                         first.plan_name.empty() ? "without a name" : first.plan_name, axis.field,
                                         grouped(predicted(points).front()->value), page_words(first.c)),
                    .headline = headline(axis, points)},
                   "sweep_sections", {"curve", "bars", "table", "sweep"}, sweep_page_data(axis, points));
}

}  // namespace attest
