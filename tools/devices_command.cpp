// attest devices: what a prediction can be asked for.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "attest/simulator/device.h"
#include "commands.h"
#include "output.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

ExitCode run(const Flags& flags) {
  const Results results(flags);
  Json devices = Json::array();
  std::string text = fmt::format("{:<10} {:>4} {:>6} {:>13} {:>7} {:>9}  {}\n", "device", "SMs", "GHz", "smem/CTA, KiB",
                                 "L2, MiB", "DRAM, TB/s", "");
  for (const std::string& name : device_names()) {
    const DeviceSpec device = load_device(name);
    Json origins = Json::object();
    for (const FieldOrigin& origin : device.origins)
      origins[origin.field] = {{origin.estimated ? "estimated" : "source", origin.text}};
    devices.push_back({{"name", name},
                       {"description", device.description},
                       {"kind", device.kind == DeviceKind::gpu ? "gpu" : "cube_vector"},
                       {"num_sms", device.num_sms},
                       {"sm_clock_hz", device.sm_clock_hz},
                       {"smem_bytes_per_cta_max", device.smem_bytes_per_cta_max},
                       {"l2_bytes", device.l2_bytes},
                       {"dram_bytes", device.dram_bytes},
                       {"dram_bytes_per_second", device.dram_bytes_per_second},
                       {"origins", origins}});
    text += fmt::format("{:<10} {:>4} {:>6.3f} {:>13.0f} {:>7.1f} {:>10.3f}  {}\n", name, device.num_sms,
                        device.sm_clock_hz / 1e9, static_cast<double>(device.smem_bytes_per_cta_max) / 1024,
                        static_cast<double>(device.l2_bytes) / (1 << 20), device.dram_bytes_per_second / 1e12,
                        device.description);
  }
  results.finish("devices", {{"devices", devices}}, text);
  return exit_pass;
}

}  // namespace

Command devices_command() {
  return {"devices", "The devices that can be predicted for",
          "  attest devices --json -   every field's source, or why it is an estimate", [](Flags&) {}, run};
}

}  // namespace attest::tools
