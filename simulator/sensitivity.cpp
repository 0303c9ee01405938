#include "attest/simulator/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "attest/problem/error.h"
#include "attest/simulator/in_parallel.h"

namespace attest {
namespace {

/// Under their names in the JSON.
std::vector<std::pair<std::string, double>> figures_of(const SimulationReport& r) {
  std::vector<std::pair<std::string, double>> figures;
  const auto json = to_json(r);
  const auto add = [&](const nlohmann::ordered_json& object, const std::string& prefix) {
    for (const auto& [name, value] : object.items())
      if (value.is_number()) figures.emplace_back(prefix + name, value.get<double>());
  };
  add(json, "");
  add(json["unfused"], "unfused.");
  return figures;
}

/// What is predicted with a field moved, as figures_of() has it; none: why not.
struct Prediction {
  std::optional<std::vector<std::pair<std::string, double>>> figures;
  std::string refused;
};

Prediction predict_with(const SimulationReport& r, std::string_view field, double factor) {
  TileWalkOptions effort = r.walk_options;
  effort.cycles_per_key_tile.clear();
  effort.max_timeline_events = 0;
  try {
    const std::optional<DeviceSpec> device = device_scaled(r.device, field, factor);
    return {figures_of(device ? simulate(r.c, r.plan, *device, r.plan_name, effort) : r), ""};
  } catch (const InvalidInput& error) {
    return {std::nullopt, error.what()};
  }
}

bool moves(double from, const std::optional<double>& to) {
  return to && std::abs(*to - from) > least_move * std::abs(from);
}

/// Of all figures; from 0 it is infinite.
double largest_change(const Estimate& e) {
  double largest = 0;
  for (const FigureMove& f : e.figures)
    for (const auto& to : {f.halved, f.doubled})
      if (moves(f.value, to)) largest = std::max(largest, std::abs((*to - f.value) / f.value));
  return largest;
}

}  // namespace

std::vector<Estimate> estimates_behind(const SimulationReport& report,
                                       const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<FieldOrigin> fields = report.device.origins;
  std::erase_if(fields, [](const FieldOrigin& o) { return !o.estimated; });
  std::vector<Prediction> predictions(2 * fields.size());  // halved, doubled
  in_parallel(
      predictions.size(),
      [&](std::size_t i) { predictions[i] = predict_with(report, fields[i / 2].field, i % 2 == 0 ? 0.5 : 2); },
      progress);

  std::vector<Estimate> behind;
  const auto figures = figures_of(report);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Prediction &halved = predictions[2 * i], &doubled = predictions[2 * i + 1];
    Estimate e{fields[i].field, fields[i].text, {}, halved.refused, doubled.refused};
    for (std::size_t k = 0; k < figures.size(); ++k) {
      const auto of = [k](const Prediction& p) {
        return p.figures ? std::optional((*p.figures)[k].second) : std::nullopt;
      };
      const auto& [name, value] = figures[k];
      if (moves(value, of(halved)) || moves(value, of(doubled)))
        e.figures.push_back({name, value, of(halved), of(doubled)});
    }
    if (!e.figures.empty() || !e.halved_refused.empty() || !e.doubled_refused.empty()) behind.push_back(std::move(e));
  }
  std::stable_sort(behind.begin(), behind.end(),
                   [](const Estimate& a, const Estimate& b) { return largest_change(a) > largest_change(b); });
  return behind;
}

}  // namespace attest
