// What SMs get of L2, where they ask for all that it has and where others ask for less.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attest/simulator/step_time.h"

namespace attest {

namespace {

/// By SM, where SMs have such shares and a key tile takes `equal` with the mean one, and L2 is busy for so much of the
/// time.
std::vector<double> paces_of(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, int ctas_per_sm,
                             const std::vector<double>& shares, double equal, double busy) {
  const auto [least, most] = std::ranges::minmax(shares);
  if (least == most) return std::vector<double>(shares.size(), 1);
  const double mean = std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
  // paces at shares that lie evenly in their logarithms, as far beyond the least and the most as these lie apart
  constexpr std::size_t steps = 48;
  const double beyond = std::log(most / least), first = std::log(least / mean) - beyond, step = 3 * beyond / steps;
  std::vector<double> at_step;
  for (std::size_t i = 0; i <= steps; ++i) {
    const double share = std::exp(busy * (first + static_cast<double>(i) * step));
    StepDemand of_share = d;
    of_share.l2 /= share, of_share.l2_waited /= share;
    at_step.push_back(equal / cycles_per_key_tile(of_share, plan, device, ctas_per_sm));
  }
  const auto paces = [&](double more) {  // where each has so much more of its share, as a logarithm
    std::vector<double> of_sms;
    for (const double share : shares) {
      const double at = std::clamp((std::log(share / mean) + more - first) / step, 0.0, steps - 1e-9);
      const auto i = static_cast<std::size_t>(at);
      of_sms.push_back(std::lerp(at_step[i], at_step[i + 1], at - static_cast<double>(i)));
    }
    return of_sms;
  };
  double low = -beyond, high = beyond;
  for (int halving = 0; halving < 30; ++halving) {
    const double middle = (low + high) / 2;
    const std::vector<double> of_sms = paces(middle);
    const bool fewer = std::accumulate(of_sms.begin(), of_sms.end(), 0.0) < static_cast<double>(shares.size());
    (fewer ? low : high) = middle;
  }
  return paces(high);
}

}  // namespace

double l2_busy(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, int ctas) {
  return d.l2 == 0 ? 0 : std::min(1.0, ctas * plan.num_warps * d.l2 / cycles_per_key_tile(d, plan, device, ctas));
}

std::vector<std::vector<double>> sm_paces(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device,
                                          int ctas, double most_busy) {
  if (d.l2 == 0) return {};
  const auto sms = static_cast<std::size_t>(device.num_sms);
  std::vector<double> shares;
  for (std::size_t sm = 0; sm < sms; ++sm) shares.push_back(device.l2_shares[sm * device.l2_shares.size() / sms]);
  const double whole = cycles_per_key_tile(d, plan, device, ctas);
  constexpr int levels = 8;
  std::vector<std::vector<double>> paces;
  bool all_alike = true;
  for (int level = 0; level <= levels; ++level) {
    const double part = static_cast<double>(level) / levels;
    StepDemand of_level = d;  // waits for L2 are those for its SM's own way there, and for others
    of_level.l2 = std::lerp(d.l2_alone, d.l2, part);
    of_level.l2_waited *= of_level.l2 / d.l2;
    const double equal = cycles_per_key_tile(of_level, plan, device, ctas);
    paces.push_back(paces_of(of_level, plan, device, ctas, shares, equal, part * most_busy));
    for (double& pace : paces.back()) {
      pace *= whole / equal;
      all_alike = all_alike && std::abs(pace - 1) < 1e-3;
    }
  }
  return all_alike ? std::vector<std::vector<double>>() : paces;
}

double l2_alone_cycles(double missing_lines, double stored_lines) {
  constexpr double lines = 49'152, cycles_of_missing = 85'503, cycles_of_stored = 191'874;
  return (missing_lines * cycles_of_missing + stored_lines * cycles_of_stored) / lines;
}

}  // namespace attest
