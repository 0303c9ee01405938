// attest kernels: what --kernel takes, and what each declares of itself.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attest/fuzz/inspect.h"
#include "attest/fuzz/kernels.h"
#include "commands.h"
#include "kernel_flag.h"
#include "output.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

void add(Json& kernels, std::string& text, const KernelEntry& kernel) {
  Json json = to_json(kernel.capability);
  json["name"] = kernel.name;
  json["unavailable"] = kernel.unavailable;
  std::vector<std::string_view> dtypes;
  for (const Dtype dtype : kernel.capability.dtypes) dtypes.push_back(to_string(dtype));
  text += fmt::format("{:<8} {} ({})\n", kernel.name, kernel.capability.description, fmt::join(dtypes, ", "));
  if (!kernel.unavailable.empty()) text += fmt::format("{:<8} cannot run here: {}\n", "", kernel.unavailable);
  kernels.push_back(std::move(json));
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  Json kernels = Json::array();
  std::string text;
  if (flags.given("--kernel")) {
    const std::string kernel = read_kernel(flags);
    add(kernels, text, {kernel, inspect_capability(WorkerProgram{}, kernel), ""});
  } else {
    for (const KernelEntry& kernel : list_kernels()) add(kernels, text, kernel);
  }
  results.finish("kernels", {{"kernels", kernels}}, text);
  return exit_pass;
}

}  // namespace

Command kernels_command() {
  return {"kernels", "The kernels that can be checked",
          "  attest kernels --json -\n"
          "  attest kernels --kernel ./libmine.so",
          declare_kernel_flag, run};
}

}  // namespace attest::tools
