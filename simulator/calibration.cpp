#include "attest/simulator/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "address.h"
#include "attest/problem/error.h"
#include "attest/simulator/l2_cache.h"
#include "noise.h"

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

std::optional<DeviceSpec> device_called(std::string_view gpu) {
  std::vector<std::string> words(1);
  for (const char c : gpu) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  const auto stands_in_words = [&](std::string name) {
    std::erase(name, '-');
    for (std::size_t from = 0; from < words.size(); ++from) {
      std::string run;
      for (std::size_t i = from; i < words.size() && run.size() < name.size(); ++i) run += words[i];
      if (run == name) return true;
    }
    return false;
  };
  for (const std::string& name : device_names()) {
    if (!stands_in_words(name)) continue;
    DeviceSpec device = load_device(name);
    if (device.kind == DeviceKind::gpu) return device;
  }
  return std::nullopt;
}

DeviceSpec device_of_chip(const DeviceSpec& device, const std::vector<double>& gpc_sides) {
  if (gpc_sides.empty() || device.l2_partitions == 1) return device;
  if (gpc_sides.size() != device.gpc_sides.size())
    throw InvalidInput("gpc_sides", fmt::format("{} GPCs", gpc_sides.size()),
                       fmt::format("must be as many as {} has, {}", device.name, device.gpcs()));
  if (std::ranges::count(gpc_sides, gpc_sides.front()) == device.gpcs())
    throw InvalidInput("gpc_sides", fmt::format("{} GPCs on side {}", device.gpcs(), gpc_sides.front()),
                       fmt::format("must be on both sides of {}'s L2", device.name));
  return device_with(device, device_field_name(&DeviceSpec::gpc_sides), gpc_sides, "the GPU that was measured");
}

Latency latency_of(const std::vector<LinesTime>& measured) {
  const auto n = static_cast<double>(measured.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const LinesTime& m : measured) {
    const double slowest = expected_largest_exponential(m.lines).mean;
    x += slowest, y += m.cycles, xx += slowest * slowest, xy += slowest * m.cycles;
  }
  const double spread = n * xx - x * x, tail = (n * xy - x * y) / spread, latency = (y - tail * x) / n;
  if (!(spread > 0) || !(tail > 0) || !(latency > 0))
    throw EnvironmentError(fmt::format("latency: of {} times of lines that are asked for together none follows", n));
  return {latency, tail};
}

double latency_tail_of(const std::vector<LinesTime>& measured, double latency) {
  double xx = 0, xy = 0;
  for (const LinesTime& m : measured) {
    const double slowest = expected_largest_exponential(m.lines).mean;
    xx += slowest * slowest, xy += slowest * (m.cycles - latency);
  }
  return xx > 0 ? std::max(0.0, xy / xx) : 0;
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

double step_deviation_of(const std::vector<WalkedTiles>& ctas) {
  constexpr std::size_t settled = 16, tiles = 16;
  std::map<int, std::vector<const WalkedTiles*>> groups;
  for (const WalkedTiles& cta : ctas)
    if (cta.asked.size() > settled + tiles) groups[cta.group].push_back(&cta);
  double step = 0, squares = 0, spans = 0, walked = 0;
  for (const auto& [group, members] : groups) {
    const auto n = static_cast<double>(members.size());
    if (n < 2) continue;
    for (std::size_t from = settled; from + tiles < members.front()->asked.size(); from += tiles / 4) {
      double mean = 0;
      const auto span = [&](const WalkedTiles* cta) { return cta->asked.at(from + tiles) - cta->asked.at(from); };
      for (const WalkedTiles* cta : members) mean += span(cta) / n;
      for (const WalkedTiles* cta : members) squares += std::pow(span(cta) - mean, 2) * n / (n - 1), ++spans;
      step += n * mean / tiles, walked += n;
    }
  }
  if (spans == 0) throw EnvironmentError("step_deviation: no two CTAs that are alike walked so far");
  return std::sqrt(squares / spans / tiles) / (step / walked);
}

GpcClocks gpc_clocks_of(const std::vector<std::vector<double>>& launches) {
  if (launches.empty() || launches.front().empty()) throw EnvironmentError("gpc_clocks: no launch has any");
  const auto gpcs = launches.front().size();
  GpcClocks all{.over_mean = std::vector<double>(gpcs)};
  for (const std::vector<double>& clocks : launches) {
    double mean = 0, squares = 0;
    for (const double clock : clocks) mean += clock / static_cast<double>(gpcs);
    for (std::size_t gpc = 0; gpc < gpcs; ++gpc) {
      const double over_mean = clocks.at(gpc) / mean;
      all.over_mean[gpc] += over_mean / static_cast<double>(launches.size());
      squares += std::pow(over_mean - 1, 2) / static_cast<double>(gpcs);
    }
    all.deviation += std::sqrt(squares) / static_cast<double>(launches.size());
  }
  return all;
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
