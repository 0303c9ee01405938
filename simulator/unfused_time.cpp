#include "unfused_time.h"

#include <algorithm>
#include <cmath>

#include "attest/simulator/compulsory.h"
#include "attest/simulator/step_time.h"

namespace attest {
namespace {

double ceil_to(double x, double unit) { return unit * std::ceil(x / unit); }

/// Rows of a tile of `columns`, which shrink in eights to the queries that there are.
double rows_of(const Problem& p, double columns, const UnfusedKernels& kernels) {
  double queries = 0;
  for (const Lengths& n : lengths_of(p)) queries = std::max(queries, static_cast<double>(n.queries));
  const double most = kernels.tile_bytes / bytes_of(p.dtype) / columns;
  return std::clamp(ceil_to(queries, 8), std::min(kernels.least_rows, most), most);
}

/// CTAs that read the same rows and are handed them together, by multicast.
double sharing(const DeviceSpec& device, const UnfusedKernels& kernels) {
  return device.compute_capability >= 90 ? kernels.cluster : 1;
}

LaneOperations operator*(LaneOperations n, double times) {
  return {n.fma * times, n.alu * times, n.exp * times, n.other * times};
}

/// Of the tensor cores, for 16-bit operands.
double matrix_rate(const DeviceSpec& d) {
  return std::max(d.mma_sync_fma_per_clock_16bit, d.wgmma_fma_per_clock_16bit);
}

/// Adds what an SM needs of its pipes for so many operations, of which all SMs have equal parts.
void add(BusyCycles& work, const LaneOperations& n, const DeviceSpec& d) {
  const auto sms = static_cast<double>(d.num_sms);
  work.exp += n.exp / d.exp_per_clock / sms;
  const bool one_rate = d.kind == DeviceKind::cube_vector;  // its vector cores do all of it
  work.fma += (n.fma + (one_rate ? n.alu : 0)) / d.fp32_fma_per_clock / sms;
  if (one_rate) return;
  const double slots = 32 * static_cast<double>(d.warp_schedulers_per_sm) * sms;
  work.alu += n.alu * d.alu_instruction_cycles / slots;
  work.issue += unlisted_instructions * (n.fma + n.alu + n.exp + n.other) / slots;
}

BusyCycles operator+(BusyCycles a, const BusyCycles& b) {
  a.tensor += b.tensor, a.exp += b.exp, a.fma += b.fma, a.alu += b.alu, a.issue += b.issue, a.smem += b.smem;
  return a;
}

double busiest(const BusyCycles& w) { return std::max({w.tensor, w.exp, w.fma, w.alu, w.issue, w.smem}); }

/// A grid's share of the device: the fullest SM's part over what each would have of equal parts, how many CTAs it takes
/// one after the other, and cycles that bytes take over L2 where each SM has its share of L2's rate.
struct Spread {
  double idle = 1, turns = 1, bytes_per_clock = 0;
  Spread(double ctas, double ctas_per_sm, const DeviceSpec& d) {
    const auto sms = static_cast<double>(d.num_sms);
    const double of_sm = std::ceil(ctas / sms);
    if (ctas > 0) idle = of_sm * sms / ctas;
    turns = std::ceil(of_sm / ctas_per_sm);
    bytes_per_clock = sms * l2_bytes_per_clock(d);
  }
  double cycles_of(double bytes) const { return idle * bytes / bytes_per_clock; }
};

/// Heads that share keys.
double of_key_head(const Problem& p) { return static_cast<double>(p.nheads) / static_cast<double>(p.nheads_k); }

/// Until the first operands of a kernel of `ctas` are there.
double cycles_before(double ctas, const DeviceSpec& d) {
  return launch_cycles(ctas, d) + d.dram_latency_cycles + d.l2_latency_cycles;
}

}  // namespace

void finish(UnfusedKernel& kernel, BusyCycles busy, double cycles, const DeviceSpec& device) {
  busy.l2_bytes = std::max(kernel.l2_read_bytes, kernel.result_bytes + kernel.local_bytes);
  busy.dram_bytes = kernel.dram_read_bytes + kernel.dram_write_bytes;
  kernel.cycles = cycles;
  kernel.time_us = 1e6 * (cycles / device.sm_clock_hz + device.launch_overhead_seconds);
  kernel.utilisation = utilisation_of(busy, cycles, device);
  kernel.bound = bound_of(kernel.utilisation);
}

ProductGrid scores_grid(const Problem& p, const DeviceSpec& device, const UnfusedKernels& kernels) {
  ProductGrid g;
  g.columns = kernels.score_columns;
  g.rows = rows_of(p, g.columns, kernels);
  const double bytes = bytes_of(p.dtype), depth = static_cast<double>(p.headdim) * bytes;
  for (const Lengths& n : lengths_of(p)) {
    const auto heads = static_cast<double>(n.entries * p.nheads), q = static_cast<double>(n.queries),
               k = static_cast<double>(n.keys);
    const double down = std::ceil(q / g.rows), across = std::ceil(k / g.columns);
    g.across = std::max(g.across, across), g.down = std::max(g.down, down * of_key_head(p));
    g.tiles += heads * down * across;
    g.l2_read_bytes += heads * depth * (q * std::ceil(across / sharing(device, kernels)) + k * down);
    g.filled_bytes += heads * depth * (q * across + k * down);
  }
  g.fmas = g.tiles * g.rows * g.columns * static_cast<double>(p.headdim);
  return g;
}

ProductGrid output_grid(const Problem& p, const DeviceSpec& device, const UnfusedKernels& kernels) {
  ProductGrid g;
  const auto width = static_cast<double>(p.headdim_v);
  g.columns = std::min(kernels.most_output_columns, ceil_to(width, kernels.output_column_unit));
  g.rows = rows_of(p, g.columns, kernels);
  const double bytes = bytes_of(p.dtype), across = std::ceil(width / g.columns);
  for (const Lengths& n : lengths_of(p)) {
    const auto heads = static_cast<double>(n.entries * p.nheads), q = static_cast<double>(n.queries),
               k = static_cast<double>(n.keys);
    const double down = std::ceil(q / g.rows);
    g.across = across, g.down = std::max(g.down, down * of_key_head(p));
    g.tiles += heads * down * across;
    g.l2_read_bytes += heads * k * bytes * (q * across + width * std::ceil(down / sharing(device, kernels)));
    g.filled_bytes += heads * k * bytes * (q * across + width * down);
    g.fmas += heads * down * across * g.rows * g.columns * k;
  }
  return g;
}

void time_product(UnfusedKernel& kernel, const ProductGrid& g, const LaneOperations& of_result, const Problem& p,
                  const DeviceSpec& device) {
  const auto sms = static_cast<double>(device.num_sms);
  const double bytes = bytes_of(p.dtype);
  const bool tensor = p.dtype != Dtype::fp32, wgmma = tensor && device.wgmma_fma_per_clock_16bit > 0;
  // an mma.sync is 2048 products, and a 64 x 64 tile of a warp loads an ldmatrix for four of them; a thread of fp32
  // loads 4 times 16 bytes for the 64 products of its 8 x 8
  BusyCycles multiplies, stores;
  if (tensor) multiplies.tensor = g.fmas / matrix_rate(device) / sms;
  if (!tensor) add(multiplies, {.fma = g.fmas, .other = g.fmas / 16}, device);
  if (tensor && !wgmma) add(multiplies, {.other = g.fmas / 2048 * 1.25 * 32}, device);
  add(stores, of_result * (kernel.result_bytes / bytes), device);
  if (device.smem_bytes_per_clock > 0) {
    // a warpgroup's 64 x columns, or a warp's 64 x 64, reads its rows and columns for each step of their products
    const double large = std::max(g.rows, g.columns), small = std::min(g.rows, g.columns);
    const double a = std::min(64.0, large), b = std::min(wgmma ? 256.0 : 64.0, small);
    const double operands = g.fmas * bytes * (a + b) / (a * b);
    multiplies.smem = (g.filled_bytes + operands) / device.smem_bytes_per_clock / sms;
    stores.smem = 2 * kernel.result_bytes / device.smem_bytes_per_clock / sms;  // staged, so that rows leave whole
  }
  const Spread spread(g.tiles, 1, device);
  kernel.l2_read_bytes += g.l2_read_bytes;
  const double of_dram = dram_bytes_per_clock(device);
  const double multiplying = std::max(
      {spread.idle * busiest(multiplies), spread.cycles_of(kernel.l2_read_bytes), kernel.dram_read_bytes / of_dram});
  const double storing = std::max(
      {spread.idle * busiest(stores), spread.cycles_of(kernel.result_bytes), kernel.dram_write_bytes / of_dram});
  finish(kernel, multiplies + stores, g.tiles == 0 ? 0 : cycles_before(g.tiles, device) + multiplying + storing,
         device);
}

void time_softmax(UnfusedKernel& kernel, const Problem& p, const DeviceSpec& device) {
  const double pairs = all_pairs(p);
  double rows = 0, longest = 0;
  for (const Lengths& n : lengths_of(p)) {
    rows += static_cast<double>(n.entries * n.queries * p.nheads);
    longest = std::max(longest, static_cast<double>(n.keys));
  }
  const bool masked = p.causal != Causal::none || p.window_left >= 0 || p.window_right >= 0 || !p.documents.empty();
  // a score: unpacked, the maximum; less it, its exponential, added up; divided by the sum and packed; masks as
  // step_time has them
  LaneOperations n{.fma = 3, .alu = 2.5, .exp = 1, .other = 0.25};
  if (masked) n.alu += 2;
  BusyCycles work;
  add(work, n * pairs, device);
  // a CTA a row, 32 scores a lane
  const double warps = std::max(1.0, std::ceil(longest / 1024));
  const double at_once = std::max(1.0, std::floor(static_cast<double>(device.max_warps_per_sm) / warps));
  const Spread spread(rows, std::min(at_once, std::max(1.0, static_cast<double>(device.max_ctas_per_sm))), device);
  kernel.l2_read_bytes = kernel.operand_bytes;
  const double turn = device.cta_launch_cycles + device.dram_latency_cycles + device.l2_latency_cycles;
  const double moved = (kernel.dram_read_bytes + kernel.dram_write_bytes) / dram_bytes_per_clock(device);
  const double rest = std::max({spread.idle * busiest(work), spread.cycles_of(kernel.l2_read_bytes),
                                spread.cycles_of(kernel.result_bytes), moved, (spread.turns - 1) * turn});
  finish(kernel, work, pairs == 0 ? 0 : cycles_before(rows, device) + rest, device);
}

LaneOperations stored_result() { return {.fma = 1, .alu = 0.5, .other = 0.125}; }

LaneOperations stored_score(const Problem& p) {
  LaneOperations n = stored_result();
  if (p.softcap != 0) n.fma += 2, n.exp += 1;
  if (p.alibi) n.alu += 1, n.fma += 1;
  if (p.bias != Bias::none) n.fma += 1, n.other += 0.5;
  return n;
}

void add_up_times(UnfusedCost& cost) {
  for (const UnfusedKernel& step : cost.steps) {
    cost.cycles += step.cycles;
    cost.l2_read_bytes += step.l2_read_bytes;
    if (cost.utilisation.empty())
      for (const Utilisation& u : step.utilisation) cost.utilisation.push_back({u.resource, 0});
    for (std::size_t i = 0; i < step.utilisation.size(); ++i)
      cost.utilisation[i].fraction += step.utilisation[i].fraction * step.cycles;
  }
  for (Utilisation& u : cost.utilisation) u.fraction /= cost.cycles;
  cost.bound = bound_of(cost.utilisation);
}

}  // namespace attest
