#include "calibration_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "attest/simulator/calibration.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string value_text(const Json& value) {
  constexpr std::size_t longest = 8;
  if (value.is_number()) return fmt::format("{:.6g}", value.get<double>());
  if (value.size() <= longest) return value.dump();
  const auto [least, most] = std::ranges::minmax(value.get<std::vector<double>>());
  return fmt::format("{:.3g} to {:.3g}", least, most);
}

}  // namespace

CalibrationReport report_of(const Calibration& calibration, const DeviceSpec& nearest, std::string_view name) {
  const DeviceSpec& gpu = calibration.device;
  const Json device = to_json(calibrated_device(name, gpu.name, gpu, nearest)), known = to_json(nearest);
  std::string text = fmt::format("{}; what is not measured is as {} has it\n\n{:<30} {:>12} {:>12} {:>7}  {}\n",
                                 gpu.name, nearest.name, "", "measured", nearest.name, "ratio", "");
  for (const FieldOrigin& origin : gpu.origins) {
    const Json &now = device["fields"][origin.field]["value"], &before = known["fields"][origin.field]["value"];
    const bool comparable = now.is_number() && before != 0;
    text +=
        fmt::format("{:<30} {:>12} {:>12} {:>7}  {}\n", origin.field, value_text(now), value_text(before),
                    comparable ? fmt::format("{:.3f}", now.get<double>() / before.get<double>()) : "-", origin.text);
  }
  for (const std::string& missing : calibration.missing) text += fmt::format("not measured: {}\n", missing);
  text += fmt::format("as {} has it:", nearest.name);
  for (const auto& [field, entry] : device["fields"].items())
    if (entry.contains("estimated")) text += " " + field;
  text += "\n";
  return {{{"nearest", nearest.name}, {"missing", calibration.missing}, {"device", device}}, text};
}

}  // namespace attest::tools
