// A prediction at several values of one field: of the case (seqlen, dtype, softcap, ...), of the plan (tile_n,
// swizzled, persistence, ...), of the device (l2_bytes, dram_bytes_per_second, ...), or of the plan or the device
// itself.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attest/simulator/plan_file.h"
#include "attest/simulator/report.h"

namespace attest {

/// A figure of a report as tables, CSV and the JSON of many predictions have it, under the name of predict's JSON.
struct ReportFigure {
  std::string_view name;
  double (*of)(const SimulationReport&);
};
std::span<const ReportFigure> report_figures();

/// All of report_figures(), and what binds: one object.
nlohmann::ordered_json figures_json(const SimulationReport& report);

inline constexpr std::size_t most_sweep_points = 1000;

/// A value as it is printed: a number, true or false, a list or a word; and as a number, where it is one.
struct SweepValue {
  std::string text;
  std::optional<double> number{};
};

struct SweepAxis {
  /// What the field is of, or what the values name.
  enum class Of : std::uint8_t { case_field, plan_field, device_field, plan, device };
  std::string field;
  Of of = Of::case_field;
  std::vector<std::string> sets{};   // of a case_field: the fields of the case that a value is given to
  std::vector<SweepValue> values{};  // in the order that was asked for, none twice

  /// Whether its values have an order and distances; if not, they are categories.
  bool numeric() const;
};

/// "FIELD=A..B:xF" (A, A*F, ... up to B), "FIELD=A..B:+S", "FIELD=A..B" (by 1) or "FIELD=A,B,C", where values are
/// numbers, words, true or false, or lists in brackets; a word with a comma stands in quotation marks. FIELD is one
/// that case_from_json() reads, or one of plan_fields() or device_field_names(); `seqlen` is both lengths, `headdim`
/// both widths, `window` both sides; `plan` and `device` take names. Throws InvalidInput naming `sweep`: an unknown
/// field, no value, B below A, a step that does not advance, more than 1000 points; or the field, for what none of its
/// values is.
SweepAxis parse_sweep(std::string_view text);

struct SweepPoint {
  SweepValue value;
  std::optional<SimulationReport> report{};
  std::string refused{};  // why there is none: the plan does not fit, or the models do not describe the case
};

/// Makes the plan for the case and device of a point: that of the name if the axis has plans, which is empty otherwise.
using PlanMaker = std::function<DescribedPlan(const Case&, const DeviceSpec&, std::string_view name)>;

/// A prediction at each value. `fields` are those of the case, as case_from_json reads them. Throws InvalidInput,
/// before anything is predicted, where a point is no case or no device; where its plan cannot be, the point says why.
std::vector<SweepPoint> sweep(const SweepAxis& axis, const nlohmann::ordered_json& fields, const DeviceSpec& device,
                              const PlanMaker& make_plan);

/// A value as JSON has it: what is no JSON is a word.
nlohmann::ordered_json to_json(const SweepValue& value);
nlohmann::ordered_json to_json(const SweepAxis& axis, const std::vector<SweepPoint>& points);
std::string to_csv(const SweepAxis& axis, const std::vector<SweepPoint>& points);
std::string to_table(const SweepAxis& axis, const std::vector<SweepPoint>& points);

}  // namespace attest
