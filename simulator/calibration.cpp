#include "attest/simulator/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <tuple>

#include "attest/problem/error.h"

namespace attest {

DeviceSpec nearest_device(std::int64_t compute_capability, std::int64_t num_sms, std::int64_t dram_bytes) {
  DeviceSpec best;
  const auto distance = [&](const DeviceSpec& d) {
    return std::tuple(std::abs(d.compute_capability - compute_capability), std::abs(d.num_sms - num_sms),
                      std::abs(d.dram_bytes - dram_bytes));
  };
  for (const std::string& name : device_names()) {
    const DeviceSpec device = load_device(name);
    if (device.kind != DeviceKind::gpu || device.compute_capability == 0) continue;
    if (best.name.empty() || distance(device) < distance(best)) best = device;
  }
  return best;
}

nlohmann::ordered_json calibrated_device(std::string_view name, std::string_view description,
                                         std::span<const CalibratedField> fields, const DeviceSpec& nearest) {
  nlohmann::ordered_json json = to_json(nearest);
  json["name"] = name;
  json["description"] = description;
  for (auto& [field, entry] : json["fields"].items()) {
    const FieldOrigin& origin = nearest.origin(field);
    entry.erase("source");
    entry["estimated"] = fmt::format("not measured; as {} has it: {}", nearest.name, origin.text);
  }
  for (const CalibratedField& field : fields) {
    if (!json["fields"].contains(field.name)) throw InvalidInput(field.name, "a field", "that no device has");
    auto& entry = json["fields"][field.name];
    const bool whole = entry.at("value").is_number_integer();
    entry = {{"value", field.value}, {"source", field.source}};
    if (whole) entry["value"] = std::llround(field.value);
  }
  device_from_json_text(json.dump(), std::string(name) + ".json");
  return json;
}

}  // namespace attest
