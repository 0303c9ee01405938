#include "attest/simulator/unfused.h"

#include <algorithm>
#include <optional>

#include "attest/simulator/compulsory.h"
#include "unfused_time.h"
#include "unfused_walk.h"

namespace attest {

UnfusedKernels own_unfused(const Problem& p) {
  constexpr double threads = 256, sums = 64, sector = 32;
  UnfusedKernels own;
  own.own = p.dtype != Dtype::fp32;
  own.tile_bytes = 128.0 * 128 * bytes_of(p.dtype);
  own.output_column_unit = own.most_output_columns = own.least_rows = 128;
  own.cluster = 1;
  // a store of matrix fragments goes by local memory, one of fp32 sums does not
  own.local_bytes = p.dtype == Dtype::fp32 ? 0 : threads * sums * sizeof(float);
  own.softmax_rows_per_sm = 32;
  own.softmax_row_bytes = 2 * sector;
  return own;
}

UnfusedCost unfused_cost(const Problem& p, const DeviceSpec& device, const UnfusedKernels& own,
                         std::int64_t dirty_bytes_at_start, bool empties_between, bool through_ncu) {
  UnfusedCost cost;
  const double bytes = bytes_of(p.dtype);
  const double pairs = all_pairs(p);
  double queries = 0, read_queries = 0, read_keys = 0;  // read: of entries whose products have a tile
  for (const Lengths& n : lengths_of(p)) {
    const auto of_class = static_cast<double>(n.entries * n.queries * p.nheads);
    queries += of_class;
    read_queries += n.keys == 0 ? 0 : of_class;
    read_keys += n.queries == 0 ? 0 : static_cast<double>(n.entries * n.keys * p.nheads_k);
  }
  if (queries == 0) return cost;
  const auto d = static_cast<double>(p.headdim), d_v = static_cast<double>(p.headdim_v);
  const double q = read_queries * d * bytes, k = read_keys * d * bytes, v = read_keys * d_v * bytes;
  const double o = queries * d_v * bytes;
  const double asked_bias = p.bias == Bias::none ? 0 : 4 * pairs;  // S is modified as it is written
  double bias = asked_bias;
  if (p.bias == Bias::qk || p.bias == Bias::bqk) bias /= static_cast<double>(p.nheads);
  if (p.bias == Bias::qk || p.bias == Bias::hqk) bias /= static_cast<double>(p.batch);
  cost.matrix_bytes = pairs * bytes;
  const std::int64_t partition_bytes = device.l2_bytes / device.l2_partitions;
  const bool stays = cost.matrix_bytes <= static_cast<double>(partition_bytes);
  const double read_again = stays ? 0 : cost.matrix_bytes;
  const double rows_at_once =
      static_cast<double>(device.num_sms * own.softmax_rows_per_sm) * static_cast<double>(p.seqlen_k) * bytes;
  const double read_twice = rows_at_once <= static_cast<double>(partition_bytes) ? 0 : cost.matrix_bytes;
  const auto l2 = static_cast<double>(device.l2_bytes);
  const double may_stay_dirty =
      device.l2_ways == 0 ? 0 : l2 * static_cast<double>(device.l2_dirty_ways) / static_cast<double>(device.l2_ways);
  // a product's CTA stores its tile at its end: those of the last ones are the newest lines, however much was read
  const double last_tiles = static_cast<double>(device.num_sms) * own.tile_bytes;
  std::optional<UnfusedWalk> walked;
  if (own.local_bytes > 0 && device.l2_ways > 0 && device.kind != DeviceKind::cube_vector)
    walked = walk_unfused(p, device, own, dirty_bytes_at_start, empties_between, through_ncu);
  double dirty = 0;
  const auto kernel = [&](std::size_t i, std::string_view name, double operands, double read, double result,
                          double tiles, double flops) {
    UnfusedKernel step;
    step.name = name;
    step.dram_read_bytes = read;
    step.operand_bytes = operands, step.result_bytes = result, step.local_bytes = tiles * own.local_bytes;
    // what was used last is what L2 still holds
    const double stored = result + step.local_bytes, through = operands + stored;
    const double newest = through <= l2 ? stored : std::max(stored * l2 / through, flops == 0 ? 0 : last_tiles);
    step.dirty_bytes_alone = std::min({may_stay_dirty, stored, newest});
    if (walked) {
      step.dram_read_bytes = walked->read[i] + (i == 0 ? bias : 0), step.dram_write_bytes = walked->written[i];
      dirty = walked->dirty_bytes_left;
      step.flops = flops;
      return step;
    }
    const double before = std::min(dirty, std::max(0.0, l2 - through));
    const double left = std::min(may_stay_dirty, before + step.dirty_bytes_alone);
    step.dram_write_bytes = dirty + stored - left;
    dirty = left;
    step.flops = flops;
    return step;
  };
  const double s = cost.matrix_bytes;
  const double inputs = q + k + bias, p_bytes = s + queries * static_cast<double>(own.softmax_row_bytes);
  const ProductGrid scores = scores_grid(p, device, own), output = output_grid(p, device, own);
  cost.steps[0] = kernel(0, "S = Q K^T", inputs, inputs, s, scores.tiles, 2 * d * pairs);
  cost.steps[0].l2_read_bytes = asked_bias;
  if (own.own)
    time_own_product(cost.steps[0], scores, d, true, own.product_ctas_per_sm, device);
  else
    time_product(cost.steps[0], scores, stored_score(p), p, device);
  cost.steps[1] = kernel(1, "P = softmax(S)", s, read_again + read_twice, p_bytes, 0, 0);
  if (own.own)
    time_own_softmax(cost.steps[1], p, own.softmax_rows_per_sm, device);
  else
    time_softmax(cost.steps[1], p, device);
  cost.steps[2] = kernel(2, "O = P V", s + v, read_again + v, o, output.tiles, 2 * d_v * pairs);
  if (own.own)
    time_own_product(cost.steps[2], output, pairs / queries, false, own.product_ctas_per_sm, device);
  else
    time_product(cost.steps[2], output, stored_result(), p, device);
  cost.dirty_bytes_left = dirty;
  for (const UnfusedKernel& step : cost.steps) {
    cost.dram_read_bytes += step.dram_read_bytes;
    cost.dram_write_bytes += step.dram_write_bytes;
    cost.sm_write_bytes += step.result_bytes + step.local_bytes;
    cost.flops += step.flops;
    cost.time_us += step.time_us;
  }
  add_up_times(cost);
  return cost;
}

}  // namespace attest
