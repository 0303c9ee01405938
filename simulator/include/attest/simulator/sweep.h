// A prediction over one field: of the case (seqlen, headdim, batch, ...) or a number of the plan (tile_n, stages, ...).
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

struct SweepAxis {
  std::string field;
  std::vector<std::int64_t> values;  // in the order that was asked for, none twice
};

/// "FIELD=A..B:xF" (A, A*F, ... up to B), "FIELD=A..B:+S", "FIELD=A..B" (by 1) or "FIELD=A,B,C". FIELD is an integer of
/// a case; `seqlen` both lengths, `headdim` both widths, `window` both sides; or a number of a plan. Throws
/// InvalidInput naming `sweep`: an unknown field, no integers, B below A, a step that does not advance, more than 1000
/// points.
SweepAxis parse_sweep(std::string_view text);

/// Whether an axis is of the case; if not, of the plan.
bool is_of_case(const SweepAxis& axis);

struct SweepPoint {
  std::int64_t value = 0;
  std::optional<SimulationReport> report;
  std::string refused;  // why there is none: the plan does not fit, or the models do not describe the case
};

/// Makes the plan for the case of a point.
using PlanMaker = std::function<DescribedPlan(const Case&)>;

/// A prediction at each value. `fields` are those of the case, as case_from_json reads them. Throws InvalidInput,
/// before anything is predicted, where a point is no case; where its plan cannot be, the point says why.
std::vector<SweepPoint> sweep(const SweepAxis& axis, const nlohmann::ordered_json& fields, const DeviceSpec& device,
                              const PlanMaker& make_plan);

nlohmann::ordered_json to_json(const SweepAxis& axis, const std::vector<SweepPoint>& points);
std::string to_csv(const SweepAxis& axis, const std::vector<SweepPoint>& points);
std::string to_table(const SweepAxis& axis, const std::vector<SweepPoint>& points);

}  // namespace attest
