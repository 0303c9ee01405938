#include "attest/simulator/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"
#include "csv.h"
#include "units.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;
using Of = SweepAxis::Of;

/// What a point predicts, but for its plan.
struct Asked {
  Case c;
  DeviceSpec device;
};

Asked asked_at(const SweepAxis& axis, const SweepValue& value, const Json& fields, const DeviceSpec& device) {
  Json json = fields;
  for (const std::string& field : axis.sets) json[field] = to_json(value);
  Asked asked{case_from_json(json), device};
  if (axis.of == Of::device) asked.device = load_device(value.text);
  if (axis.of == Of::device_field) asked.device = device_with(device, axis.field, to_json(value), "--sweep");
  return asked;
}

SweepPoint predict_at(const SweepAxis& axis, const SweepValue& value, const Asked& asked, const PlanMaker& make_plan) {
  SweepPoint point{.value = value};
  try {
    const auto& [c, device] = asked;
    if (const auto why = unpredicted(c)) {
      point.refused = *why;
      return point;
    }
    DescribedPlan plan = make_plan(c, device, axis.of == Of::plan ? value.text : "");
    const std::string name = plan.name;
    if (axis.of == Of::plan_field)
      set_plan_fields(plan, std::vector<std::string>{fmt::format("{}={}", axis.field, value.text)}, c, device, "sweep");
    TileWalkOptions effort;
    effort.max_timeline_events = 0;  // of a thousand points nobody reads the timelines
    point.report = simulate(c, plan.plan, device, name, effort);
  } catch (const InvalidInput& error) {
    point.refused = error.what();
  }
  return point;
}

}  // namespace

std::vector<SweepPoint> sweep(const SweepAxis& axis, const Json& fields, const DeviceSpec& device,
                              const PlanMaker& make_plan) {
  std::vector<Asked> all;
  all.reserve(axis.values.size());
  for (const SweepValue& value : axis.values) all.push_back(asked_at(axis, value, fields, device));
  std::vector<SweepPoint> points;
  points.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) points.push_back(predict_at(axis, axis.values[i], all[i], make_plan));
  return points;
}

Json to_json(const SweepAxis& axis, const std::vector<SweepPoint>& points) {
  Json json = Json::array();
  for (const SweepPoint& point : points) {
    Json entry = {{axis.field, to_json(point.value)}};
    if (point.report)
      entry.update(figures_json(*point.report));
    else
      entry["refused"] = point.refused;
    json.push_back(std::move(entry));
  }
  return json;
}

std::string to_csv(const SweepAxis& axis, const std::vector<SweepPoint>& points) {
  std::string csv = axis.field;
  for (const ReportFigure& figure : report_figures()) csv += fmt::format(",{}", figure.name);
  csv += ",bound,occupancy_limit,refused\n";
  for (const SweepPoint& point : points) {
    csv += csv_cell(point.value.text);
    for (const ReportFigure& figure : report_figures())
      csv += point.report ? fmt::format(",{}", figure.of(*point.report)) : ",";
    csv += point.report
               ? fmt::format(",{},{},\n", csv_cell(point.report->bound), csv_cell(point.report->occupancy.limit))
               : fmt::format(",,,{}\n", csv_cell(point.refused));
  }
  return csv;
}

std::string to_table(const SweepAxis& axis, const std::vector<SweepPoint>& points) {
  std::size_t width = std::max<std::size_t>(12, axis.field.size() + 1);
  for (const SweepPoint& point : points) width = std::max(width, point.value.text.size() + 1);
  std::string text =
      fmt::format("{:>{}}{:>12}{:>12}{:>8}{:>12}{:>11}{:>9}{:>11}{:>6}{:>7}{:>6}  {}\n", axis.field, width, "time",
                  "unfused", "faster", "DRAM", "less DRAM", "TFLOP/s", "conflicts", "regs", "spill", "CTAs", "bound");
  for (const SweepPoint& point : points) {
    if (!point.report) {
      text += fmt::format("{:>{}}  {}\n", point.value.text, width, point.refused);
      continue;
    }
    const SimulationReport& r = *point.report;
    const double conflicts = r.smem_wavefronts_ideal == 0 ? 1 : r.smem_wavefronts / r.smem_wavefronts_ideal;
    text += fmt::format("{:>{}}{:>12}{:>12}{:>7.2f}x{:>12}{:>11}{:>9.0f}{:>10.2f}x{:>6}{:>7}{:>6}  {}\n",
                        point.value.text, width, units::time(r.time_us), units::time(r.unfused.time_us),
                        r.unfused_speedup, units::bytes(r.dram_read_bytes + r.dram_write_bytes),
                        units::percent(r.hbm_reduction_vs_unfused), r.time_us == 0 ? 0 : r.flops / r.time_us / 1e6,
                        conflicts, r.registers_per_thread, r.spill_bytes_per_thread, r.ctas_per_sm, r.bound);
  }
  return text;
}

}  // namespace attest
