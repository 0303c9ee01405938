#include "attest/simulator/unified_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attest/simulator/case_counts.h"
#include "attest/simulator/compulsory.h"

namespace attest {
namespace {

// Vector operations a score beside its exponential: scale, compare with the maximum, subtract, add to the sum, convert;
// and an element of P V: O rescaled, and added to.
constexpr double vector_operations_per_score = 5, vector_operations_per_output = 2;

/// A feature of the case that the model lacks.
std::optional<PlanFault> beyond_model(const Case& c, const DeviceSpec& d) {
  const Problem& p = c.problem;
  struct Feature {
    bool asked;
    const char* field;
    std::string value;
    const char* what;
  };
  const auto lengths = [](const char* field, const std::vector<std::int64_t>& of) {
    return Feature{!of.empty(), field, fmt::format("of {} entries", of.size()), "sequences of their own lengths"};
  };
  for (const Feature& feature :
       {lengths("varlen_q", p.varlen_q), lengths("varlen_k", p.varlen_k), lengths("seqused_k", p.seqused_k),
        Feature{c.num_splits != 1, "num_splits", fmt::format("{}", c.num_splits), "splits"},
        Feature{p.bias != Bias::none, "bias", std::string(to_string(p.bias)), "a bias"}})
    if (feature.asked)
      return PlanFault{feature.field, feature.value,
                       fmt::format("asks for {}, which the model of {} lacks", feature.what, d.name), "not modelled",
                       feature.field};
  return std::nullopt;
}

/// How often a head's K and V are read from DRAM: once where they stay in L2 beside what is exchanged, else once for
/// each turn of the cores over the head's query tiles. Cores that work on several heads at a time take one turn over
/// each.
double key_reads(const Problem& p, const KernelPlan& plan, const DeviceSpec& d, double exchange_in_flight) {
  const auto key_bytes = static_cast<double>(p.seqlen_k * (p.headdim + p.headdim_v) * bytes_of(p.dtype));
  if (key_bytes + exchange_in_flight <= static_cast<double>(d.l2_bytes)) return 1;
  const std::int64_t tiles = std::max<std::int64_t>(1, (p.seqlen_q + plan.tile_m - 1) / plan.tile_m);
  const std::int64_t sharing = p.nheads / p.nheads_k;  // query heads of one head of K and V, which follow each other
  return std::ceil(static_cast<double>(tiles * sharing) / static_cast<double>(d.num_cube_cores));
}

}  // namespace

std::optional<PlanFault> beyond_unified_buffer(const KernelPlan& plan, const Case& c, const DeviceSpec& d) {
  if (auto fault = beyond_model(c, d)) return fault;
  const BufferFootprint f = buffer_footprint(plan, d);
  struct Buffer {
    const char* name;
    std::int64_t takes, has;
  };
  for (const Buffer& buffer :
       {Buffer{"unified_buffer", f.unified_buffer, d.unified_buffer_bytes}, Buffer{"l1", f.l1, d.l1_bytes},
        Buffer{"l0a", f.l0a, d.l0a_bytes}, Buffer{"l0b", f.l0b, d.l0b_bytes}, Buffer{"l0c", f.l0c, d.l0c_bytes}})
    if (buffer.takes > buffer.has)
      return PlanFault{"tile_m", fmt::format("{}", plan.tile_m),
                       fmt::format("with tile_n {} and stages {} takes {} bytes, more than {}_bytes = {} of {}",
                                   plan.tile_n, plan.stages, buffer.takes, buffer.name, buffer.has, d.name),
                       "a buffer is too small"};
  return std::nullopt;
}

BufferFootprint buffer_footprint(const KernelPlan& plan, const DeviceSpec& device) {
  const auto d = static_cast<std::int64_t>(plan.columns(Operand::q)), dv = std::int64_t{plan.columns(Operand::o)};
  const std::int64_t m = plan.tile_m, n = plan.tile_n, e = plan.element_bytes, step_bytes = 32;
  BufferFootprint f;
  f.l1 = m * d * e + plan.stages * n * (d + dv) * e + m * n * e;
  f.l0a = m * step_bytes;
  f.l0b = std::max(n, dv) * step_bytes;
  f.l0c = m * std::max(n, dv) * 4;
  const std::int64_t cores = device.num_vector_cores / device.num_cube_cores, rows = (m + cores - 1) / cores;
  f.unified_buffer = rows * (n * (4 + e) + 2 * (dv + 1) * 4);
  return f;
}

double exchange_bytes(const KernelPlan& plan, const DeviceSpec& device, std::int64_t key_tiles) {
  if (device.scores_through_global_memory == 0) return 0;
  const double m = plan.tile_m, n = plan.tile_n, dv = plan.columns(Operand::o);
  return static_cast<double>(key_tiles) * (m * n * 4 + m * n * plan.element_bytes + m * dv * 4);
}

SimulationReport simulate_unified_buffer(const Case& c, const KernelPlan& plan, const DeviceSpec& device,
                                         std::string_view plan_name) {
  const Problem& p = c.problem;
  SimulationReport r;
  r.c = c;
  r.plan_name = plan_name;
  r.plan = plan;
  r.device = device;
  r.smem_bytes_per_cta = static_cast<int>(buffer_footprint(plan, device).unified_buffer);
  r.ctas_per_sm = r.occupancy.ctas_per_sm = 1;
  r.occupancy.limit = "cube cores";

  const Counts counts = count_case(c, plan);
  const auto by = [&](Operand x) {
    return static_cast<double>(counts.global_sectors[static_cast<std::size_t>(x)]) * 32;
  };
  const double cores = static_cast<double>(device.num_cube_cores), key_tiles = static_cast<double>(counts.key_tiles);
  const std::int64_t tiles = (p.seqlen_q + plan.tile_m - 1) / plan.tile_m;
  const auto ctas = static_cast<double>(p.batch * p.nheads * tiles);
  const double exchanged = exchange_bytes(plan, device, counts.key_tiles);
  // a core works on one tile while the other kind works on the next
  const double in_flight = 2 * std::min(cores, ctas) * exchange_bytes(plan, device, 1);
  const double leaves_l2 = in_flight > static_cast<double>(device.l2_bytes) ? exchanged : 0;
  r.sm_read_bytes = by(Operand::q) + by(Operand::k) + by(Operand::v) + exchanged;
  r.sm_write_bytes = by(Operand::o) + static_cast<double>(counts.lse_bytes) + exchanged;
  r.l2_read_bytes = r.sm_read_bytes;
  const CompulsoryBytes compulsory = compulsory_bytes(p);
  const double queries = std::min(static_cast<double>(compulsory.read),
                                  static_cast<double>(p.batch * p.nheads * p.seqlen_q * p.headdim) * bytes_of(p.dtype));
  const double once = static_cast<double>(compulsory.read) - queries;
  r.dram_read_bytes =
      std::max(static_cast<double>(compulsory.read),
               std::min(queries + once * key_reads(p, plan, device, in_flight), r.sm_read_bytes - exchanged)) +
      leaves_l2;
  r.dram_write_bytes = static_cast<double>(compulsory.write) + leaves_l2;
  r.compulsory_bytes = static_cast<double>(compulsory.total());
  r.exp_count = static_cast<double>(counts.exponentials);
  r.flops = flops_of_pairs(p, visible_pairs(p));
  r.flops_unmasked = flops_of_pairs(p, all_pairs(p));
  r.flops_executed = 2.0 * static_cast<double>(counts.matrix_steps) * 256 * plan.k_step();
  r.walk.ctas = static_cast<std::int64_t>(ctas);
  r.walk.key_tiles = counts.key_tiles;
  r.walk.sm_read_bytes = r.sm_read_bytes, r.walk.l2_read_bytes = r.l2_read_bytes;
  r.walk.dram_read_bytes = r.dram_read_bytes, r.walk.dram_write_bytes = r.dram_write_bytes;
  r.walk.first_read_bytes = static_cast<double>(compulsory.read);

  // Core cycles if all cores shared the work evenly, then with the last turn's idle cores.
  const double cube = r.flops_executed / 2 / (cores * device.cube_fma_per_clock_16bit);
  const double outputs = key_tiles * plan.tile_m * plan.columns(Operand::o);
  const double operations = vector_operations_per_score * r.exp_count + vector_operations_per_output * outputs;
  const double vector = operations / (cores * device.fp32_fma_per_clock) + r.exp_count / (cores * device.exp_per_clock);
  const double idle = ctas == 0 ? 1 : std::ceil(ctas / cores) * cores / ctas;
  const double l2 = (r.sm_read_bytes + r.sm_write_bytes) / device.l2_bytes_per_second * device.sm_clock_hz;
  const double dram = (r.dram_read_bytes + r.dram_write_bytes) / device.dram_bytes_per_second * device.sm_clock_hz;
  r.cycles = std::max({std::max(cube, vector) * idle, l2, dram});
  r.walk.cycles = r.cycles;
  r.time_us = 1e6 * r.cycles / device.sm_clock_hz;
  if (r.cycles > 0)
    r.utilisation = {
        {"cube", cube / r.cycles}, {"vector", vector / r.cycles}, {"L2", l2 / r.cycles}, {"DRAM", dram / r.cycles}};
  const auto busiest = std::max_element(r.utilisation.begin(), r.utilisation.end(),
                                        [](auto& a, auto& b) { return a.fraction < b.fraction; });
  r.bound = busiest == r.utilisation.end() ? "nothing to do" : std::string(busiest->resource);

  compare_with_unfused(r);
  return r;
}

}  // namespace attest
