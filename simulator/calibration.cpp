#include "attest/simulator/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <tuple>

#include "address.h"
#include "attest/problem/error.h"
#include "attest/simulator/l2_cache.h"
#include "local_place.h"

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

std::int64_t l2_partitions_of(const std::vector<CyclicWalk>& contiguous) {
  const auto beyond = std::find_if(contiguous.begin(), contiguous.end(), [](const auto& w) { return w.missed > 0.5; });
  const double kept = beyond == contiguous.end() ? 1 : beyond->filled;
  if (contiguous.empty() || beyond == contiguous.begin() || kept <= 0.45)
    throw EnvironmentError(fmt::format("l2_partitions: {:.2f} of L2 do not fit it, all or half of it should", kept));
  return kept < 0.75 ? 2 : 1;
}

std::int64_t l2_ways_of(const std::vector<CyclicWalk>& scattered, std::int64_t partitions) {
  const auto missed = [&](std::int64_t ways, double filled) {
    const double mean = filled * static_cast<double>(partitions * ways);
    double all = 1, others = std::exp(-mean);  // P(as many others)
    for (std::int64_t n = 0; n < ways; ++n) {
      all -= others;
      others *= mean / static_cast<double>(n + 1);
    }
    return all;
  };
  const auto error = [&](std::int64_t ways) {
    double squares = 0;
    for (const CyclicWalk& walk : scattered) squares += std::pow(walk.missed - missed(ways, walk.filled), 2);
    return std::sqrt(squares / static_cast<double>(scattered.size()));
  };
  std::int64_t best = 1;
  for (std::int64_t ways = 2; ways <= L2Cache::max_ways; ways *= 2)
    if (error(ways) < error(best)) best = ways;
  if (scattered.empty() || !(error(best) < 0.1))
    throw EnvironmentError(fmt::format("l2_ways: with {} what is missed is off by {:.2f}, and by more with others",
                                       best, scattered.empty() ? 1 : error(best)));
  return best;
}

std::int64_t l2_dirty_ways_of(double part, std::int64_t ways) {
  const double dirty = part * static_cast<double>(ways);
  return dirty > static_cast<double>(ways - 1) ? ways : std::max<std::int64_t>(static_cast<std::int64_t>(dirty), 1);
}

FrameSpread frame_spread(const std::vector<int>& lines) {
  FrameSpread s;
  const auto sets = static_cast<double>(lines.size());
  for (const int n : lines) s.mean += n / sets;
  if (s.mean == 0) return s;
  for (const int n : lines) s.variance_over_mean += (n - s.mean) * (n - s.mean) / sets / s.mean;
  return s;
}

FrameSpread frame_spread(int words, const DeviceSpec& device) {
  constexpr int warps_an_sm = 8, warps_a_cta = 4, most = 16;
  const LocalFrames frames{warps_an_sm * device.num_sms, words};
  const int sets = LineSampler::all_sets(device);
  std::vector<int> lines(static_cast<std::size_t>(sets));
  for (std::int64_t warp = 0; warp < frames.warps; ++warp)
    for (std::int64_t word = 0; word < words; ++word) {
      const LocalPlace place = local_place(frames, warp, word, sets, device);
      const bool copied = warp / warps_a_cta % device.l2_partitions == 0;  // CTAs are on either side by turns
      int& of_set = lines[static_cast<std::size_t>(place.set)];
      if (place.home == 0 || copied) of_set = std::min(of_set + 1, most);
    }
  return frame_spread(lines);
}

double local_memory_sets_of(const std::map<int, FrameSpread>& counted, const DeviceSpec& device) {
  constexpr int steps_of_one = 100, coarse = 5;  // the best of the coarse steps, then of those beside it
  constexpr int first = 4 * steps_of_one / 5, last = 2 * steps_of_one;
  int best = 0;
  double least = 0, farthest = 0, fewer = 0;
  const auto consider = [&](int step) {
    DeviceSpec tried = device;
    tried.local_memory_sets = static_cast<double>(step) / steps_of_one;
    double squares = 0, most = 0, mean = 1;
    for (const auto& [words, spread] : counted) {
      const FrameSpread predicted = frame_spread(words, tried);
      const double off = spread.variance_over_mean - predicted.variance_over_mean;
      squares += off * off, most = std::max(most, std::abs(off));
      if (std::abs(spread.mean / predicted.mean - 1) > std::abs(mean - 1)) mean = spread.mean / predicted.mean;
    }
    if (best == 0 || squares < least) best = step, least = squares, farthest = most, fewer = mean;
  };
  for (int step = first; step <= last; step += coarse) consider(step);
  const int around = best;
  for (int step = std::max(first, around - coarse + 1); step < std::min(last + 1, around + coarse); ++step)
    if (step != around) consider(step);
  const double sets = static_cast<double>(best) / steps_of_one;
  if (counted.empty() || !(std::abs(fewer - 1) < 0.1 && farthest < 0.3) || best == first || best == last)
    throw EnvironmentError(fmt::format(
        "local_memory_sets: with {:.2f} sets have {:.2f} times as many lines of frames as they should, "
        "spread {:.2f} off, and with others of {:.1f} to {:.1f} it is no better",
        sets, fewer, farthest, static_cast<double>(first) / steps_of_one, static_cast<double>(last) / steps_of_one));
  return sets;
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
  FieldOrigin& sides = *std::find_if(device.origins.begin(), device.origins.end(),
                                     [](const FieldOrigin& o) { return o.field == "gpc_sides"; });
  const auto other = [&](double side) { return side != device.gpc_sides.front(); };
  const bool both = std::any_of(device.gpc_sides.begin(), device.gpc_sides.end(), other);
  if (both != (device.l2_partitions == 2) && device.gpcs() > 1) {
    for (std::size_t gpc = 0; gpc < device.gpc_sides.size(); ++gpc)
      device.gpc_sides[gpc] = device.l2_partitions == 2 ? static_cast<double>(gpc % 2) : 0;
    sides = {sides.field, fmt::format("made to fit l2_partitions = {}: {}", device.l2_partitions, sides.text), true};
  }
  while (!L2Hash::known(device) && LineSampler::all_sets(device) % device.l2_slices_per_partition != 0)
    --device.l2_slices_per_partition;
  return device_from_json_text(to_json(device).dump(), std::string(name) + ".json");
}

}  // namespace attest
