// attest kernels: what --kernel takes, and what each declares of itself.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attest/fuzz/kernels.h"
#include "commands.h"
#include "output.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinities.
Json number_or_word(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

ExitCode run(const Flags& flags) {
  const Results results(flags);
  Json kernels = Json::array();
  std::string text;
  for (const auto& [name, capability, unavailable] : list_kernels()) {
    std::vector<std::string_view> dtypes;
    for (const Dtype dtype : capability.dtypes) dtypes.push_back(to_string(dtype));
    kernels.push_back({{"name", name},
                       {"description", capability.description},
                       {"dtypes", dtypes},
                       {"offers_lse", capability.offers_lse},
                       {"lse_base", capability.lse_base},
                       {"lse_of_empty_row", number_or_word(capability.lse_of_empty_row)},
                       {"bitwise_batch", capability.bitwise_batch},
                       {"bitwise_gqa", capability.bitwise_gqa},
                       {"unavailable", unavailable}});
    text += fmt::format("{:<8} {} ({})\n", name, capability.description, fmt::join(dtypes, ", "));
    if (!unavailable.empty()) text += fmt::format("{:<8} cannot run here: {}\n", "", unavailable);
  }
  results.finish("kernels", {{"kernels", kernels}}, text);
  return exit_pass;
}

}  // namespace

Command kernels_command() {
  return {"kernels", "The kernels that can be checked", "  attest kernels --json -", [](Flags&) {}, run};
}

}  // namespace attest::tools
