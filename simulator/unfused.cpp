#include "attest/simulator/unfused.h"

#include <algorithm>

#include "attest/simulator/compulsory.h"

namespace attest {

UnfusedCost unfused_cost(const Problem& p, const DeviceSpec& device) {
  UnfusedCost cost;
  const double bytes = bytes_of(p.dtype);
  const double pairs = all_pairs(p);
  double queries = 0, keys = 0;
  for (const Lengths& n : lengths_of(p)) {
    queries += static_cast<double>(n.entries * n.queries * p.nheads);
    keys += static_cast<double>(n.entries * n.keys * p.nheads_k);
  }
  if (queries == 0) return cost;
  const auto d = static_cast<double>(p.headdim), d_v = static_cast<double>(p.headdim_v);
  const double q = queries * d * bytes, k = keys * d * bytes, v = keys * d_v * bytes, o = queries * d_v * bytes;
  double bias = 4 * pairs;  // S is modified as it is written
  if (p.bias == Bias::none) bias = 0;
  if (p.bias == Bias::qk || p.bias == Bias::bqk) bias /= static_cast<double>(p.nheads);
  if (p.bias == Bias::qk || p.bias == Bias::hqk) bias /= static_cast<double>(p.batch);
  cost.matrix_bytes = pairs * bytes;
  const std::int64_t partition_bytes = device.l2_bytes / device.l2_partitions;
  const bool stays = cost.matrix_bytes <= static_cast<double>(partition_bytes);
  const double read_again = stays ? 0 : cost.matrix_bytes;
  const double matrix_rate = p.dtype == Dtype::fp32
                                 ? device.fp32_fma_per_clock
                                 : std::max(device.mma_sync_fma_per_clock_16bit, device.wgmma_fma_per_clock_16bit);
  const double sms = static_cast<double>(device.num_sms) * device.sm_clock_hz;
  const auto kernel = [&](std::string_view name, double read, double written, double flops, double arithmetic) {
    const double moved = (read + written) / device.dram_bytes_per_second;
    return UnfusedKernel{name, read, written, flops,
                         1e6 * (std::max(moved, arithmetic) + device.launch_overhead_seconds)};
  };
  const auto product = [&](double depth) { return pairs * depth / (matrix_rate * sms); };
  cost.steps = {kernel("S = Q K^T", q + k + bias, cost.matrix_bytes, 2 * d * pairs, product(d)),
                kernel("P = softmax(S)", read_again, cost.matrix_bytes, 0, pairs / (device.exp_per_clock * sms)),
                kernel("O = P V", read_again + v, o, 2 * d_v * pairs, product(d_v))};
  for (const UnfusedKernel& step : cost.steps) {
    cost.dram_read_bytes += step.dram_read_bytes;
    cost.dram_write_bytes += step.dram_write_bytes;
    cost.flops += step.flops;
    cost.time_us += step.time_us;
  }
  return cost;
}

}  // namespace attest
