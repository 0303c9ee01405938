#include <cmath>
#include <nlohmann/json.hpp>

#include "attest/simulator/plan_file.h"
#include "attest/simulator/report.h"
#include "attest/simulator/unified_buffer.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

/// A count as a whole number where a double holds it exactly.
Json whole(double x) {
  if (x >= 0 && x < 0x1p53) return std::llround(x);
  return x;
}

Json registers_json(const RegisterEstimate& e) {
  return {{"known", e.known},   {"output", e.output},
          {"scores", e.scores}, {"query", e.query},
          {"rows", e.rows},     {"probabilities", e.probabilities},
          {"copies", e.copies}, {"other", e.other},
          {"demand", e.demand}, {"producer_stack_words", e.producer_stack_words}};
}

Json simulation_json(const TileWalk& w) {
  return {{"ctas", w.ctas},
          {"key_tiles", w.key_tiles},
          {"sets_sampled_one_in", w.sampling},
          {"key_tiles_per_event", w.key_tiles_per_event},
          {"simulated_fraction", w.simulated_fraction},
          {"first_read_bytes", whole(w.first_read_bytes)},
          {"dirty_bytes_left", whole(w.dirty_bytes_left)},
          {"busy_fraction", w.busy_fraction}};
}

Json buffers_json(const SimulationReport& r) {
  const BufferFootprint f = buffer_footprint(r.plan, r.device);
  return {{"unified_buffer_bytes", f.unified_buffer},
          {"l1_bytes", f.l1},
          {"l0a_bytes", f.l0a},
          {"l0b_bytes", f.l0b},
          {"l0c_bytes", f.l0c},
          {"exchange_bytes", whole(exchange_bytes(r.plan, r.device, r.walk.key_tiles))}};
}

}  // namespace

Json to_json(const std::vector<AccessWavefronts>& accesses) {
  Json json = Json::array();
  for (const AccessWavefronts& a : accesses)
    json.push_back({{"use", a.use},
                    {"instruction", a.instruction},
                    {"wavefronts", a.wavefronts},
                    {"wavefronts_ideal", a.ideal},
                    {"ways", a.ways},
                    {"in_smem_wavefronts", a.in_total}});
  return json;
}

Json to_json(const SimulationReport& r) {
  Json json;
  json["schema"] = "attest/predict/1";
  json["case"] = to_json(r.c);
  json["plan"] = to_json(DescribedPlan{r.plan_name, r.plan});
  json["device"] = r.device.name;
  json["warm"] = r.walk_options.warm;
  json["dram_read_bytes"] = whole(r.dram_read_bytes);
  json["dram_write_bytes"] = whole(r.dram_write_bytes);
  json["compulsory_bytes"] = whole(r.compulsory_bytes);
  json["sm_read_bytes"] = whole(r.sm_read_bytes);
  json["sm_write_bytes"] = whole(r.sm_write_bytes);
  json["l2_read_bytes"] = whole(r.l2_read_bytes);
  json["l2_crossing_bytes"] = whole(r.l2_crossing_bytes);
  json["smem_wavefronts"] = whole(r.smem_wavefronts);
  json["smem_wavefronts_ideal"] = whole(r.smem_wavefronts_ideal);
  json["smem_accesses"] = to_json(r.smem_accesses);
  json["smem_bytes_per_cta"] = r.smem_bytes_per_cta;
  json["registers_per_thread"] = r.registers_per_thread;
  json["spill_bytes_per_thread"] = r.spill_bytes_per_thread;
  json["parked_bytes_per_thread"] = r.parked_bytes_per_thread;
  json["spill_store_bytes"] = whole(r.spill_store_bytes);
  json["spill_load_bytes"] = whole(r.spill_load_bytes);
  json["ctas_per_sm"] = r.ctas_per_sm;
  json["cycles"] = whole(r.cycles);
  json["time_us"] = r.time_us;
  json["flops"] = whole(r.flops);
  json["flops_unmasked"] = whole(r.flops_unmasked);
  json["flops_executed"] = whole(r.flops_executed);
  json["exp_count"] = whole(r.exp_count);
  json["kernels"] = r.kernels;
  json["hbm_reduction_vs_unfused"] = r.hbm_reduction_vs_unfused;
  json["bound"] = r.bound;
  json["occupancy_limit"] = r.occupancy.limit;
  Json& utilisation = json["utilisation"] = Json::object();
  for (const Utilisation& u : r.utilisation) utilisation[std::string(u.resource)] = u.fraction;
  json["registers"] = registers_json(r.registers);
  if (r.device.kind == DeviceKind::cube_vector) json["buffers"] = buffers_json(r);
  json["unfused"] = {{"dram_read_bytes", whole(r.unfused.dram_read_bytes)},
                     {"dram_write_bytes", whole(r.unfused.dram_write_bytes)},
                     {"dirty_bytes_left", whole(r.unfused.dirty_bytes_left)},
                     {"matrix_bytes", whole(r.unfused.matrix_bytes)},
                     {"flops", whole(r.unfused.flops)},
                     {"kernels", UnfusedCost::kernels},
                     {"time_us", r.unfused.time_us},
                     {"time_over_fused", r.unfused_speedup}};
  json["simulation"] = simulation_json(r.walk);
  Json& hangs_on = json["hangs_on"] = Json::array();
  for (const Estimate& e : r.hangs_on) hangs_on.push_back({{"field", e.field}, {"why", e.why}, {"figures", e.figures}});
  return json;
}

}  // namespace attest
