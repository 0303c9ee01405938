// "FIELD=VALUES": which field is swept, and over what.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"
#include "attest/problem/json_reader.h"
#include "attest/problem/text.h"
#include "attest/simulator/sweep.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;
using Of = SweepAxis::Of;

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw InvalidInput("sweep", fmt::format("'{}'", text.substr(0, 60)), why);
}

/// Names on the axis that set several fields of a case.
struct Several {
  std::string_view name;
  std::vector<std::string> sets;
};
const Several several[] = {{"seqlen", {"seqlen_q", "seqlen_k"}},
                           {"headdim", {"headdim", "headdim_v"}},
                           {"window", {"window_left", "window_right"}}};

/// The fields of a case that `name` sets; none if it is no name of a case's.
std::vector<std::string> fields_of_case(std::string_view name) {
  for (const Several& s : several)
    if (s.name == name) return s.sets;
  for (const std::string& field : case_field_names())
    if (field == name) return {field};
  return {};
}

bool contains(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const PlanField* plan_field(std::string_view name) {
  const auto fields = plan_fields();
  const auto at = std::find_if(fields.begin(), fields.end(), [&](const PlanField& f) { return f.name == name; });
  return at == fields.end() ? nullptr : &*at;
}

/// Head dimensions and element size, which a plan has too, are the case's.
Of kind_of(const std::string& field) {
  if (field == "plan") return Of::plan;
  if (field == "device") return Of::device;
  if (!fields_of_case(field).empty()) return Of::case_field;
  if (field != "element_bytes" && plan_field(field) != nullptr) return Of::plan_field;
  if (contains(device_field_names(), field)) return Of::device_field;
  refuse(field,
         fmt::format("is none of plan, device, seqlen, window, {}, nor a field of a plan (see attest plans) or of "
                     "a device (see attest devices --json -)",
                     fmt::join(case_field_names(), ", ")));
}

template <class Number>
std::optional<Number> read(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(value)) return std::nullopt;
  return value;
}

/// What is no JSON, or a number beyond float64, is a word.
Json parsed(std::string_view text) {
  const auto watch = [&](int depth, Json::parse_event_t /*event*/, Json& /*parsed*/) {
    if (depth > deepest_json) refuse(text, fmt::format("is nested more than {} deep", deepest_json));
    return true;
  };
  Json json = Json::parse(text, watch, false);
  if (!json.is_discarded() && tiny_number(text)) refuse(text, no_float64);
  if (json.is_discarded() || json.is_object() || json.is_null()) return std::string(text);
  return json;
}

/// No two alike, and not too many.
class Values {
 public:
  explicit Values(std::string_view whole) : whole_(whole) {}
  void add(SweepValue value) {
    if (std::any_of(values_.begin(), values_.end(), [&](const SweepValue& v) { return v.text == value.text; }))
      refuse(whole_, fmt::format("has {} twice", value.text.substr(0, 40)));
    values_.push_back(std::move(value));
    if (values_.size() > most_sweep_points) refuse(whole_, fmt::format("has more than {} points", most_sweep_points));
  }
  std::vector<SweepValue> take() { return std::move(values_); }

 private:
  std::string_view whole_;
  std::vector<SweepValue> values_;
};

struct Range {
  std::string_view first, last, step;
  bool times;
};

template <class Number>
std::vector<SweepValue> walk(std::string_view whole, const Range& range) {
  const auto number = [&](std::string_view text) {
    if (const auto value = read<Number>(text)) return *value;
    refuse(whole, fmt::format("has '{}', which is no {}", text.substr(0, 30),
                              std::is_integral_v<Number> ? "integer of 64 bits" : "finite number"));
  };
  const Number first = number(range.first), last = number(range.last), step = number(range.step);
  constexpr bool whole_numbers = std::is_integral_v<Number>;
  if (range.times && (whole_numbers ? step < 2 : !(step > 1)))
    refuse(whole, whole_numbers ? "has a factor below 2" : "has a factor of 1 or less");
  if (!range.times && (whole_numbers ? step < 1 : !(step > 0)))
    refuse(whole, whole_numbers ? "has a step below 1" : "has a step of 0 or less");
  if (last < first) refuse(whole, "ends below where it begins");
  if (range.times && (whole_numbers ? first < 1 : !(first > 0)))
    refuse(whole, whole_numbers ? "is multiplied from below 1" : "is multiplied from 0 or less");
  Values values(whole);
  if constexpr (whole_numbers) {
    for (Number value = first;;) {
      values.add({fmt::format("{}", value), static_cast<double>(value)});
      // what would pass `last`, or 64 bits, is the end
      if (range.times ? value > last / step : value > last - step) return values.take();
      value = range.times ? value * step : value + step;
    }
  } else {
    // to 12 digits, so that ten steps of 0.1 end at 1
    for (int i = 0;; ++i) {
      const std::string text = fmt::format("{:.12g}", range.times ? first * std::pow(step, i) : first + i * step);
      const double value = number(text);
      if (value > last) return values.take();
      values.add({text, value});
    }
  }
}

/// The values of "A..B", "A..B:xF" and "A..B:+S".
std::vector<SweepValue> range_of(std::string_view whole, std::string_view text) {
  const std::size_t dots = text.find("..");
  Range range{text.substr(0, dots), text.substr(dots + 2), "1", false};
  if (const std::size_t colon = range.last.find(':'); colon != std::string_view::npos) {
    const std::string_view step = range.last.substr(colon + 1);
    if (step.empty() || (step[0] != 'x' && step[0] != '+'))
      refuse(whole, "has a step that is neither xFACTOR nor +STEP");
    range = {range.first, range.last.substr(0, colon), step.substr(1), step[0] == 'x'};
  }
  const std::string_view parts[] = {range.first, range.last, range.step};
  const bool reals = std::any_of(std::begin(parts), std::end(parts), [](std::string_view part) {
    return part.find_first_of(".e") != std::string_view::npos;
  });
  return reals ? walk<double>(whole, range) : walk<std::int64_t>(whole, range);
}

/// Commas in brackets and in quotation marks part nothing.
std::vector<SweepValue> list_of(std::string_view whole, std::string_view text) {
  Values values(whole);
  for (std::size_t from = 0;;) {
    std::size_t to = from;
    int depth = 0;
    for (bool quoted = false; to < text.size() && (depth > 0 || quoted || text[to] != ','); ++to) {
      if (text[to] == '"') quoted = !quoted;
      if (!quoted) depth += text[to] == '[' ? 1 : text[to] == ']' ? -1 : 0;
    }
    const std::string_view one = text.substr(from, to - from);
    if (one.empty()) refuse(whole, "has an empty value");
    const Json json = parsed(one);
    SweepValue value{json.is_string() ? json.get<std::string>() : json.dump(), std::nullopt};
    if (json.is_number()) value.number = json.get<double>();
    values.add(std::move(value));
    if (to == text.size()) return values.take();
    from = to + 1;
  }
}

/// Refuses words, switches and lists that no plan has; which numbers fit is a matter of each point.
void check_type(const SweepAxis& axis) {
  const PlanField& field = *plan_field(axis.field);
  const bool takes_numbers = plan_value(KernelPlan{}, field).is_number();
  for (const SweepValue& value : axis.values)
    if (!takes_numbers || !value.number)
      (void)plan_conditions("sweep", std::vector<std::string>{fmt::format("{}={}", axis.field, value.text)});
}

}  // namespace

bool SweepAxis::numeric() const {
  return std::all_of(values.begin(), values.end(), [](const SweepValue& value) { return value.number.has_value(); });
}

Json to_json(const SweepValue& value) { return parsed(value.text); }

SweepAxis parse_sweep(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) refuse(text, "is not FIELD=A..B:xF, FIELD=A..B:+S or FIELD=A,B,C");
  if (!is_printable(text)) throw InvalidInput("sweep", shown_value(text), "is not printable UTF-8");
  SweepAxis axis;
  axis.field = text.substr(0, equals);
  std::replace(axis.field.begin(), axis.field.end(), '-', '_');
  axis.of = kind_of(axis.field);
  if (axis.of == Of::case_field) axis.sets = fields_of_case(axis.field);
  const std::string_view values = text.substr(equals + 1);
  // "../mine.json" is a path
  const bool range = values.find("..") != std::string_view::npos && values.find('/') == std::string_view::npos;
  axis.values = range ? range_of(text, values) : list_of(text, values);
  if (axis.of == Of::plan_field) check_type(axis);
  return axis;
}

}  // namespace attest
