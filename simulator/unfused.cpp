#include "attest/simulator/unfused.h"

#include <algorithm>

namespace attest {

UnfusedCost unfused_cost(const Problem& p, const DeviceSpec& device) {
  UnfusedCost cost;
  const double bytes = bytes_of(p.dtype);
  const double heads = static_cast<double>(p.batch) * static_cast<double>(p.nheads);
  const double pairs = heads * static_cast<double>(p.seqlen_q) * static_cast<double>(p.seqlen_k);
  if (p.batch * p.nheads * p.seqlen_q == 0) return cost;
  const double key_rows = static_cast<double>(p.batch * p.nheads_k * p.seqlen_k);
  const double q = heads * static_cast<double>(p.seqlen_q * p.headdim) * bytes,
               k = key_rows * static_cast<double>(p.headdim) * bytes;
  const double v = key_rows * static_cast<double>(p.headdim_v) * bytes;
  const double o = heads * static_cast<double>(p.seqlen_q * p.headdim_v) * bytes;
  cost.matrix_bytes = pairs * bytes;
  const std::int64_t partition_bytes = device.l2_bytes / device.l2_partitions;
  const bool stays = cost.matrix_bytes <= static_cast<double>(partition_bytes);
  const double read_again = stays ? 0 : cost.matrix_bytes;
  const double matrix_rate = p.dtype == Dtype::fp32
                                 ? device.fp32_fma_per_clock
                                 : std::max(device.mma_sync_fma_per_clock_16bit, device.wgmma_fma_per_clock_16bit);
  const double sms = static_cast<double>(device.num_sms) * device.sm_clock_hz;
  const auto d = static_cast<double>(p.headdim), d_v = static_cast<double>(p.headdim_v);
  const auto kernel = [&](std::string_view name, double read, double written, double flops, double arithmetic) {
    const double moved = (read + written) / device.dram_bytes_per_second;
    return UnfusedKernel{name, read, written, flops,
                         1e6 * (std::max(moved, arithmetic) + device.launch_overhead_seconds)};
  };
  const auto product = [&](double depth) { return pairs * depth / (matrix_rate * sms); };
  cost.steps = {kernel("S = Q K^T", q + k, cost.matrix_bytes, 2 * d * pairs, product(d)),
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
