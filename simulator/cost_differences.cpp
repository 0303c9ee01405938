#include "cost_differences.h"

#include <fmt/format.h>

#include <algorithm>

#include "units.h"

namespace attest {
namespace {

/// Microseconds for which a resource is busy.
double busy_us(const SimulationReport& r, std::string_view resource) {
  for (const Utilisation& u : r.utilisation)
    if (u.resource == resource) return u.fraction * r.time_us;
  return 0;
}

/// The narrowest copy of a row of Q, K or V.
int copy_bytes(const SimulationReport& r) {
  return std::min({r.plan.copy_bytes_q, r.plan.copy_bytes_k, r.plan.copy_bytes_v});
}

struct Cost {
  double extra_us;
  std::string text;
};

}  // namespace

std::vector<std::string> extra_costs(const SimulationReport& base, const SimulationReport& other, double growth) {
  const auto dram = [](const SimulationReport& x) { return x.dram_read_bytes + x.dram_write_bytes; };
  const auto warps = [](const SimulationReport& x) { return double(x.ctas_per_sm) * x.plan.num_warps; };
  const auto extra_us = [&](std::string_view resource) {
    return std::max(0.0, busy_us(other, resource) - growth * busy_us(base, resource));
  };
  std::vector<Cost> found;
  const auto more = [&](const char* what, double mine, double theirs, double us) {
    if (mine > 0 && theirs > 1.03 * growth * mine)
      found.push_back({us, fmt::format("{:.0f}% more {}", 100 * (theirs / (growth * mine) - 1), what)});
  };
  more("shared-memory wavefronts", base.smem_wavefronts, other.smem_wavefronts, extra_us("shared memory"));
  more("bytes from L2", base.l2_read_bytes, other.l2_read_bytes, extra_us("L2"));
  more("DRAM bytes", dram(base), dram(other), extra_us("DRAM"));
  more("matrix work, masked keys and padding with it", base.flops_executed, other.flops_executed,
       extra_us("tensor") + extra_us("cube"));
  more("exponentials", base.exp_count, other.exp_count, extra_us("exp"));
  more("time of sums and products", busy_us(base, "FMA"), busy_us(other, "FMA"), extra_us("FMA"));
  more("time of maxima, masks and packing", busy_us(base, "ALU"), busy_us(other, "ALU"), extra_us("ALU"));
  more("time of the warps' issue slots", busy_us(base, "issue"), busy_us(other, "issue"), extra_us("issue"));
  if (other.spill_bytes_per_thread > base.spill_bytes_per_thread)
    found.push_back({0, fmt::format("{} instead of {} bytes spilled a thread and key tile",
                                    other.spill_bytes_per_thread, base.spill_bytes_per_thread)});
  const auto idle_us = [](const SimulationReport& x) { return (1 - x.walk.busy_fraction) * x.time_us; };
  if (other.walk.busy_fraction < 0.97 * base.walk.busy_fraction)
    found.push_back({std::max(0.0, idle_us(other) - growth * idle_us(base)),
                     fmt::format("CTA slots in use {} of the time instead of {}",
                                 units::percent(other.walk.busy_fraction), units::percent(base.walk.busy_fraction))});
  if (warps(other) < warps(base)) {
    double unexplained = other.time_us - growth * base.time_us;
    for (const Cost& cost : found) unexplained -= cost.extra_us;
    found.push_back(
        {std::max(0.0, unexplained), fmt::format("{:.0f} instead of {:.0f} warps an SM to overlap (limit: {})",
                                                 warps(other), warps(base), other.occupancy.limit)});
  }
  if (copy_bytes(other) < copy_bytes(base))  // where sectors and wavefronts come from
    found.insert(found.begin(), {extra_us("shared memory") + extra_us("L2"),
                                 fmt::format("copies of {} instead of {} bytes", copy_bytes(other), copy_bytes(base))});
  std::stable_sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.extra_us > b.extra_us; });
  std::vector<std::string> texts;
  texts.reserve(found.size());
  for (Cost& cost : found) texts.push_back(std::move(cost.text));
  return texts;
}

}  // namespace attest
