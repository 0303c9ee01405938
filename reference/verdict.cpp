#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "attest/reference/compare.h"

namespace attest {
namespace {

// JSON has no NaN and no Inf: they become strings.
nlohmann::ordered_json number(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

}  // namespace

std::string_view to_string(Status status) {
  switch (status) {
    case Status::passed:
      return "passed";
    case Status::wrong_values:
      return "wrong_values";
    case Status::wrong_shape:
      return "wrong_shape";
    case Status::unwritten:
      return "unwritten";
    case Status::out_of_bounds:
      return "out_of_bounds";
    case Status::hazard:
      return "hazard";
    case Status::crashed:
      return "crashed";
    case Status::hung:
      return "hung";
    case Status::unsupported:
      return "unsupported";
  }
  return "?";
}

nlohmann::ordered_json to_json(const Verdict& v) {
  nlohmann::ordered_json json;
  json["status"] = to_string(v.status);
  json["rule"] = v.rule;
  json["channel"] = v.channel;
  json["element"] = v.element;
  json["value"] = number(v.value);
  json["expected"] = number(v.expected);
  json["bound"] = number(v.bound);
  json["error_over_budget"] = number(v.error_over_budget);
  json["numerics"] = v.numerics;
  json["visible_keys"] = v.visible_keys;
  json["detail"] = v.detail;
  return json;
}

std::string ratio_text(double error_over_budget) {
  std::string text;
  for (int digits = 3; digits <= 17; ++digits) {
    text = fmt::format("{:.{}g}", error_over_budget, digits);
    if (text != "1") break;
  }
  return text;
}

}  // namespace attest
