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
  cost.dram_read_bytes = q + k + v + 2 * read_again;
  cost.dram_write_bytes = 2 * cost.matrix_bytes + o;
  cost.flops = 2 * static_cast<double>(p.headdim + p.headdim_v) * pairs;

  const double matrix_rate = p.dtype == Dtype::fp32
                                 ? device.fp32_fma_per_clock
                                 : std::max(device.mma_sync_fma_per_clock_16bit, device.wgmma_fma_per_clock_16bit);
  const double sms = static_cast<double>(device.num_sms) * device.sm_clock_hz;
  const auto seconds = [&](double moved, double arithmetic) {
    return std::max(moved / device.dram_bytes_per_second, arithmetic) + device.launch_overhead_seconds;
  };
  const double scores =
      seconds(q + k + cost.matrix_bytes, pairs * static_cast<double>(p.headdim) / (matrix_rate * sms));
  const double softmax = seconds(read_again + cost.matrix_bytes, pairs / (device.exp_per_clock * sms));
  const double output = seconds(read_again + v + o, pairs * static_cast<double>(p.headdim_v) / (matrix_rate * sms));
  cost.time_us = 1e6 * (scores + softmax + output);
  return cost;
}

}  // namespace attest
