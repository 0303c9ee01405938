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
  const auto l2 = static_cast<double>(device.l2_bytes);
  const double may_stay_dirty =
      device.l2_ways == 0 ? 0 : l2 * static_cast<double>(device.l2_dirty_ways) / static_cast<double>(device.l2_ways);
  // a product's CTA stores its tile at its end: those of the last ones are the newest lines, however much was read
  constexpr double tile_bytes = 64 << 10;  // 128 x 256 or 64 x 512 in 16 bits, as cuBLAS chose
  const double last_tiles = static_cast<double>(device.num_sms) * tile_bytes;
  double dirty = 0;
  const auto kernel = [&](std::string_view name, double operands, double read, double result, double flops,
                          double arithmetic, bool overlaps) {
    UnfusedKernel step;
    step.name = name;
    step.dram_read_bytes = read;
    step.operand_bytes = operands, step.result_bytes = result;
    // what was used last is what L2 still holds
    const double through = operands + result;
    const double newest = through <= l2 ? result : std::max(result * l2 / through, flops == 0 ? 0 : last_tiles);
    step.dirty_bytes_alone = std::min({may_stay_dirty, result, newest});
    const double before = std::min(dirty, std::max(0.0, l2 - through));
    const double left = std::min(may_stay_dirty, before + step.dirty_bytes_alone);
    step.dram_write_bytes = dirty + result - left;
    dirty = left;
    step.flops = flops;
    const double moved = (step.dram_read_bytes + step.dram_write_bytes) / device.dram_bytes_per_second;
    step.time_us =
        1e6 * ((overlaps ? std::max(moved, arithmetic) : moved + arithmetic) + device.launch_overhead_seconds);
    return step;
  };
  const auto product = [&](double depth) { return pairs * depth / (matrix_rate * sms); };
  const double s = cost.matrix_bytes;
  const double inputs = q + k + bias;
  cost.steps[0] = kernel("S = Q K^T", inputs, inputs, s, 2 * d * pairs, product(d), false);
  cost.steps[1] = kernel("P = softmax(S)", s, read_again, s, 0, pairs / (device.exp_per_clock * sms), true);
  cost.steps[2] = kernel("O = P V", s + v, read_again + v, o, 2 * d_v * pairs, product(d_v), true);
  cost.dirty_bytes_left = dirty;
  for (const UnfusedKernel& step : cost.steps) {
    cost.dram_read_bytes += step.dram_read_bytes;
    cost.dram_write_bytes += step.dram_write_bytes;
    cost.flops += step.flops;
    cost.time_us += step.time_us;
  }
  return cost;
}

}  // namespace attest
