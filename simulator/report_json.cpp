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

/// null where it is not known.
Json whole(const std::optional<double>& x) { return x ? whole(*x) : Json(nullptr); }

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

Json utilisation_json(const std::vector<Utilisation>& utilisation) {
  Json json = Json::object();
  for (const Utilisation& u : utilisation) json[std::string(u.resource)] = u.fraction;
  return json;
}

Json unfused_json(const SimulationReport& r) {
  const UnfusedCost& u = r.unfused;
  Json steps = Json::array();
  for (const UnfusedKernel& k : u.steps)
    steps.push_back({{"name", k.name},
                     {"dram_read_bytes", whole(k.dram_read_bytes)},
                     {"dram_write_bytes", whole(k.dram_write_bytes)},
                     {"l2_read_bytes", whole(k.l2_read_bytes)},
                     {"sm_write_bytes", whole(k.result_bytes + k.local_bytes)},
                     {"flops", whole(k.flops)},
                     {"cycles", whole(k.cycles)},
                     {"time_us", k.time_us},
                     {"bound", k.bound},
                     {"utilisation", utilisation_json(k.utilisation)}});
  return {{"dram_read_bytes", whole(u.dram_read_bytes)},
          {"dram_write_bytes", whole(u.dram_write_bytes)},
          {"dirty_bytes_left", whole(u.dirty_bytes_left)},
          {"l2_read_bytes", whole(u.l2_read_bytes)},
          {"sm_write_bytes", whole(u.sm_write_bytes)},
          {"matrix_bytes", whole(u.matrix_bytes)},
          {"flops", whole(u.flops)},
          {"kernels", UnfusedCost::kernels},
          {"cycles", whole(u.cycles)},
          {"time_us", u.time_us},
          {"time_over_fused", r.unfused_speedup},
          {"bound", u.bound},
          {"utilisation", utilisation_json(u.utilisation)},
          {"steps", steps}};
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

/// null where nobody asked for it.
Json estimates_json(const SimulationReport& r) {
  if (!r.hangs_on) return nullptr;
  const auto number = [](const std::optional<double>& x) {
    return !x ? Json(nullptr) : *x == std::floor(*x) ? whole(*x) : Json(*x);
  };
  Json json = Json::array();
  for (const Estimate& e : *r.hangs_on) {
    Json& entry = json.emplace_back(Json{{"field", e.field}, {"why", e.why}, {"figures", Json::array()}});
    for (const FigureMove& f : e.figures)
      entry["figures"].push_back(
          {{"name", f.name}, {"value", number(f.value)}, {"halved", number(f.halved)}, {"doubled", number(f.doubled)}});
    if (!e.halved_refused.empty()) entry["halved_refused"] = e.halved_refused;
    if (!e.doubled_refused.empty()) entry["doubled_refused"] = e.doubled_refused;
  }
  return json;
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
  json["spill_store_instructions"] = whole(r.spill_store_instructions);
  json["spill_load_instructions"] = whole(r.spill_load_instructions);
  json["ctas_per_sm"] = r.ctas_per_sm;
  json["cycles"] = whole(r.cycles);
  json["time_us"] = r.time_us;
  json["flops"] = whole(r.flops);
  json["flops_unmasked"] = whole(r.flops_unmasked);
  json["flops_executed"] = whole(r.flops_executed);
  json["exp_count"] = whole(r.exp_count);
  json["xu_instructions"] = whole(r.xu_instructions);
  json["kernels"] = r.kernels;
  json["hbm_reduction_vs_unfused"] = r.hbm_reduction_vs_unfused;
  json["bound"] = r.bound;
  json["occupancy_limit"] = r.occupancy.limit;
  json["utilisation"] = utilisation_json(r.utilisation);
  json["registers"] = registers_json(r.registers);
  if (r.device.kind == DeviceKind::cube_vector) json["buffers"] = buffers_json(r);
  json["unfused"] = unfused_json(r);
  json["simulation"] = simulation_json(r.walk);
  json["estimated_fields"] = r.device.num_estimates();
  json["hangs_on"] = estimates_json(r);
  return json;
}

}  // namespace attest
