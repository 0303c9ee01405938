#include "attest/simulator/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"
#include "csv.h"
#include "units.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

/// A name on the axis and the fields of a case that it sets.
struct CaseField {
  std::string_view name;
  std::vector<std::string_view> sets;
};

const std::vector<CaseField>& case_fields() {
  static const std::vector<CaseField> fields = {
      {"seqlen", {"seqlen_q", "seqlen_k"}},
      {"seqlen_q", {"seqlen_q"}},
      {"seqlen_k", {"seqlen_k"}},
      {"batch", {"batch"}},
      {"nheads", {"nheads"}},
      {"nheads_k", {"nheads_k"}},
      {"headdim", {"headdim", "headdim_v"}},
      {"headdim_v", {"headdim_v"}},
      {"window", {"window_left", "window_right"}},
      {"window_left", {"window_left"}},
      {"window_right", {"window_right"}},
      {"prefix", {"prefix"}},
      {"base_offset", {"base_offset"}},
      {"num_splits", {"num_splits"}},
      {"page_size", {"page_size"}},
      {"seed", {"seed"}},
  };
  return fields;
}

const CaseField* case_field(std::string_view name) {
  const auto at = std::find_if(case_fields().begin(), case_fields().end(), [&](auto& f) { return f.name == name; });
  return at == case_fields().end() ? nullptr : &*at;
}

/// A number of a plan; headdim and its kin are the case's.
bool is_plan_number(std::string_view name) {
  const auto fields = plan_fields();
  return std::any_of(fields.begin(), fields.end(), [&](const PlanField& f) {
    return f.name == name && plan_value(KernelPlan{}, f).is_number() && f.name != "element_bytes";
  });
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw InvalidInput("sweep", fmt::format("'{}'", text.substr(0, 60)), why);
}

std::int64_t integer(std::string_view whole, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    refuse(whole, fmt::format("has '{}', which is no integer of 64 bits", text.substr(0, 30)));
  return value;
}

/// The values of "A..B", "A..B:xF" and "A..B:+S".
std::vector<std::int64_t> range_of(std::string_view whole, std::string_view text) {
  const std::size_t dots = text.find("..");
  std::string_view last_text = text.substr(dots + 2);
  std::string_view step_text = "+1";
  if (const std::size_t colon = last_text.find(':'); colon != std::string_view::npos) {
    step_text = last_text.substr(colon + 1);
    last_text = last_text.substr(0, colon);
  }
  const std::int64_t first = integer(whole, text.substr(0, dots)), last = integer(whole, last_text);
  if (step_text.empty() || (step_text[0] != 'x' && step_text[0] != '+'))
    refuse(whole, "has a step that is neither xFACTOR nor +STEP");
  const bool times = step_text[0] == 'x';
  const std::int64_t step = integer(whole, step_text.substr(1));
  if (step < (times ? 2 : 1)) refuse(whole, times ? "has a factor below 2" : "has a step below 1");
  if (last < first) refuse(whole, "ends below where it begins");
  if (times && first < 1) refuse(whole, "is multiplied from below 1");
  std::vector<std::int64_t> values;
  for (std::int64_t value = first;;) {
    values.push_back(value);
    if (values.size() > most_sweep_points) refuse(whole, fmt::format("has more than {} points", most_sweep_points));
    // what would pass `last`, or 64 bits, is the end
    if (times ? value > last / step : value > last - step) return values;
    value = times ? value * step : value + step;
  }
}

std::vector<std::int64_t> list_of(std::string_view whole, std::string_view text) {
  std::vector<std::int64_t> values;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::int64_t value = integer(whole, rest.substr(0, comma));
    if (std::find(values.begin(), values.end(), value) != values.end())
      refuse(whole, fmt::format("has {} twice", value));
    values.push_back(value);
    if (values.size() > most_sweep_points) refuse(whole, fmt::format("has more than {} points", most_sweep_points));
    if (comma == std::string_view::npos) return values;
    rest = rest.substr(comma + 1);
  }
}

Case case_at(const SweepAxis& axis, const Json& fields, std::int64_t value) {
  Json json = fields;
  if (const CaseField* field = case_field(axis.field))
    for (const std::string_view name : field->sets) {
      Json& entry = json[std::string(name)];
      // a seed is read without a sign
      if (value < 0)
        entry = value;
      else
        entry = static_cast<std::uint64_t>(value);
    }
  return case_from_json(json);
}

SweepPoint predict_at(const SweepAxis& axis, std::int64_t value, const Case& c, const DeviceSpec& device,
                      const PlanMaker& make_plan) {
  SweepPoint point{.value = value, .report = std::nullopt, .refused = ""};
  try {
    if (const auto why = unpredicted(c)) {
      point.refused = *why;
      return point;
    }
    DescribedPlan plan = make_plan(c);
    const std::string name = plan.name;
    if (case_field(axis.field) == nullptr)
      set_plan_fields(plan, std::vector<std::string>{fmt::format("{}={}", axis.field, value)}, c, device);
    TileWalkOptions effort;
    effort.max_timeline_events = 0;  // of a thousand points nobody reads the timelines
    point.report = simulate(c, plan.plan, device, name, effort);
  } catch (const InvalidInput& error) {
    point.refused = error.what();
  }
  return point;
}

}  // namespace

SweepAxis parse_sweep(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) refuse(text, "is not FIELD=A..B:xF, FIELD=A..B:+S or FIELD=A,B,C");
  SweepAxis axis;
  axis.field = text.substr(0, equals);
  std::replace(axis.field.begin(), axis.field.end(), '-', '_');
  if (case_field(axis.field) == nullptr && !is_plan_number(axis.field)) {
    std::string names;
    for (const CaseField& field : case_fields()) names += fmt::format("{}{}", names.empty() ? "" : ", ", field.name);
    refuse(axis.field, fmt::format("is none of {}, nor a number of a plan (see attest plans)", names));
  }
  const std::string_view values = text.substr(equals + 1);
  axis.values = values.find("..") != std::string_view::npos ? range_of(text, values) : list_of(text, values);
  return axis;
}

bool is_of_case(const SweepAxis& axis) { return case_field(axis.field) != nullptr; }

std::vector<SweepPoint> sweep(const SweepAxis& axis, const Json& fields, const DeviceSpec& device,
                              const PlanMaker& make_plan) {
  std::vector<Case> cases;
  cases.reserve(axis.values.size());
  for (const std::int64_t value : axis.values) cases.push_back(case_at(axis, fields, value));
  std::vector<SweepPoint> points;
  points.reserve(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i)
    points.push_back(predict_at(axis, axis.values[i], cases[i], device, make_plan));
  return points;
}

Json to_json(const SweepAxis& axis, const std::vector<SweepPoint>& points) {
  Json json = Json::array();
  for (const SweepPoint& point : points) {
    Json entry = {{axis.field, point.value}};
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
    csv += fmt::format("{}", point.value);
    for (const ReportFigure& figure : report_figures())
      csv += point.report ? fmt::format(",{}", figure.of(*point.report)) : ",";
    csv += point.report
               ? fmt::format(",{},{},\n", csv_cell(point.report->bound), csv_cell(point.report->occupancy.limit))
               : fmt::format(",,,{}\n", csv_cell(point.refused));
  }
  return csv;
}

std::string to_table(const SweepAxis& axis, const std::vector<SweepPoint>& points) {
  std::string text =
      fmt::format("{:>12}{:>12}{:>12}{:>8}{:>12}{:>11}{:>9}{:>11}{:>6}{:>7}{:>6}  {}\n", axis.field, "time", "unfused",
                  "faster", "DRAM", "less DRAM", "TFLOP/s", "conflicts", "regs", "spill", "CTAs", "bound");
  for (const SweepPoint& point : points) {
    if (!point.report) {
      text += fmt::format("{:>12}  {}\n", point.value, point.refused);
      continue;
    }
    const SimulationReport& r = *point.report;
    const double conflicts = r.smem_wavefronts_ideal == 0 ? 1 : r.smem_wavefronts / r.smem_wavefronts_ideal;
    text += fmt::format("{:>12}{:>12}{:>12}{:>7.2f}x{:>12}{:>11}{:>9.0f}{:>10.2f}x{:>6}{:>7}{:>6}  {}\n", point.value,
                        units::time(r.time_us), units::time(r.unfused.time_us), r.unfused_speedup,
                        units::bytes(r.dram_read_bytes + r.dram_write_bytes),
                        units::percent(r.hbm_reduction_vs_unfused), r.time_us == 0 ? 0 : r.flops / r.time_us / 1e6,
                        conflicts, r.registers_per_thread, r.spill_bytes_per_thread, r.ctas_per_sm, r.bound);
  }
  return text;
}

}  // namespace attest
