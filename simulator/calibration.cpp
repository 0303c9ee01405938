#include "attest/simulator/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <tuple>

#include "attest/problem/error.h"
#include "attest/simulator/l2_cache.h"

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

std::int64_t ways_of(const std::vector<CyclicWalk>& walks) {
  const auto missed = [](std::int64_t ways, double filled) {
    const double mean = filled * static_cast<double>(ways);
    double all = 1, others = std::exp(-mean);  // P(as many others)
    for (std::int64_t n = 0; n < ways; ++n) {
      all -= others;
      others *= mean / static_cast<double>(n + 1);
    }
    return all;
  };
  const auto off = [&](std::int64_t ways) {
    double sum = 0;
    for (const CyclicWalk& walk : walks) sum += std::pow(walk.missed - missed(ways, walk.filled), 2);
    return sum;
  };
  std::int64_t best = 1;
  for (std::int64_t ways = 2; ways <= L2Cache::max_ways; ways *= 2)
    if (off(ways) < off(best)) best = ways;
  return best;
}

DeviceSpec calibrated_device(std::string_view name, std::string_view description, const DeviceSpec& measured,
                             const DeviceSpec& nearest) {
  DeviceSpec device = nearest;
  device.name = name;
  device.description = description;
  for (FieldOrigin& origin : device.origins) {
    const auto known = std::find_if(measured.origins.begin(), measured.origins.end(),
                                    [&](const FieldOrigin& o) { return o.field == origin.field; });
    if (known == measured.origins.end()) {
      origin = {origin.field, fmt::format("not measured; as {} has it: {}", nearest.name, origin.text), true};
    } else {
      copy_device_field(origin.field, measured, device);
      origin = *known;
    }
  }
  if (device.gpc_clocks.size() != device.gpc_sides.size()) device.gpc_clocks.assign(device.gpc_sides.size(), 1);
  const std::int64_t sets = device.l2_bytes / (device.l2_partitions * device.l2_ways * 128);
  while (sets % device.l2_slices_per_partition != 0) --device.l2_slices_per_partition;
  return device_from_json_text(to_json(device).dump(), std::string(name) + ".json");
}

}  // namespace attest
