// Plans as text, and what reading them says.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "attest/problem/error.h"
#include "attest/simulator/plan_file.h"

namespace attest {

using Json = nlohmann::ordered_json;

inline Case d128() {
  Case c;
  c.problem.headdim = c.problem.headdim_v = 128;
  c.problem.seqlen_q = c.problem.seqlen_k = 512;
  return c;
}

inline DescribedPlan read(const Json& json, const Case& c = d128(), const char* device = "h200") {
  return plan_from_json_text(json.dump(), "my.json", c, load_device(device));
}

inline Json plan_with(const Json& fields) {
  Json json = {{"schema", "attest/plan/1"}};
  if (!fields.is_null()) json.update(fields);
  return json;
}

/// Field and message that a plan is refused with; "" if it is taken.
inline std::pair<std::string, std::string> refusal(const std::string& text, const char* device = "h200") {
  try {
    (void)plan_from_json_text(text, "my.json", d128(), load_device(device));
  } catch (const InvalidInput& error) {
    return {error.field(), error.what()};
  }
  return {};
}

}  // namespace attest
