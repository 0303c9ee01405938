// attest plans: the kernels' tilings that a prediction can be asked for.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "attest/plan/catalog.h"
#include "attest/simulator/device.h"
#include "case_flags.h"
#include "commands.h"
#include "output.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const std::string device_name = flags.text("--device").value_or("h100");
  refuse_unknown("device", device_name, device_names());
  const DeviceSpec device = load_device(device_name);
  Json plans = Json::array();
  std::string text = fmt::format("On {}, bf16:\n", device.name);
  for (const NamedPlan& named : named_plans) {
    text += fmt::format("{:<8} {}\n", named.name, named.description);
    Json tilings = Json::array();
    for (const int headdim : {64, 128, 256}) {
      Problem problem;
      problem.headdim = problem.headdim_v = headdim;
      const KernelPlan plan = named.make(problem, static_cast<std::uint32_t>(device.smem_bytes_per_cta_max));
      tilings.push_back({{"headdim", headdim},
                         {"tile_m", plan.tile_m},
                         {"tile_n", plan.tile_n},
                         {"num_warps", plan.num_warps},
                         {"stages", plan.stages},
                         {"q_in_registers", plan.q_in_registers},
                         {"lazy_rescale", plan.lazy_rescale},
                         {"swizzled", plan.swizzled},
                         {"smem_bytes", plan.smem_bytes()}});
      text += fmt::format(
          "         headdim {:>3}: {} queries x {} keys, {} warps, {} slot{} of K and V, {} KiB of shared memory\n",
          headdim, plan.tile_m, plan.tile_n, plan.num_warps, plan.stages, plan.stages == 1 ? "" : "s",
          static_cast<double>(plan.smem_bytes()) / 1024);
    }
    plans.push_back({{"name", named.name}, {"description", named.description}, {"tilings", tilings}});
  }
  results.finish("plans", {{"device", device.name}, {"dtype", "bf16"}, {"plans", plans}}, text);
  return exit_pass;
}

}  // namespace

Command plans_command() {
  return {"plans", "The tilings that can be predicted", "  attest plans --device a100",
          [](Flags& flags) {
            flags.group("Plans");
            flags.value("--device", "D", "Whose shared memory they are to fit (h100)");
          },
          run};
}

}  // namespace attest::tools
