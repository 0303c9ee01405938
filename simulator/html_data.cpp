// What the page of html_report() draws, as one JSON object. simulator/report_page/*.js read it by these names.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attest/simulator/bank_map.h"
#include "attest/simulator/html_report.h"
#include "attest/simulator/length_curve.h"
#include "attest/simulator/unified_buffer.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

/// Bytes on each way, in both directions.
Json flow_json(const SimulationReport& r) {
  const UnfusedCost& u = r.unfused;
  return {{"fused",
           {{"dram_read", r.dram_read_bytes},
            {"dram_write", r.dram_write_bytes},
            {"dirty_left", r.walk.dirty_bytes_left},
            {"l2_read", r.l2_read_bytes},
            {"sm_read", r.sm_read_bytes},
            {"sm_write", r.sm_write_bytes}}},
          {"unfused",
           {{"dram_read", u.dram_read_bytes},
            {"dram_write", u.dram_write_bytes},
            {"dirty_left", u.dirty_bytes_left},
            {"l2_read", u.l2_read_bytes},
            {"sm_write", u.sm_write_bytes}}}};
}

/// FLOP/s and bytes/s that bound any kernel of this plan.
Json roofs_json(const SimulationReport& r) {
  const DeviceSpec& d = r.device;
  const double sms = static_cast<double>(d.num_sms) * d.sm_clock_hz;
  const auto peak = [&](double fma_per_clock) { return 2 * fma_per_clock * sms; };
  Json roofs = {{"dram_bytes_per_second", d.dram_bytes_per_second}, {"l2_bytes_per_second", d.l2_bytes_per_second}};
  Json& peaks = roofs["tensor"] = Json::array();
  const auto add = [&](const char* name, double fma_per_clock) {
    if (fma_per_clock > 0) peaks.push_back({{"name", name}, {"flops_per_second", peak(fma_per_clock)}});
  };
  if (d.kind == DeviceKind::cube_vector) {
    add("cubes, 16 bit", d.cube_fma_per_clock_16bit);
    return roofs;
  }
  if (r.plan.element_bytes == 4) add("fp32 FMA", d.fp32_fma_per_clock);
  if (r.plan.element_bytes != 4) add("mma.sync, 16 bit", d.mma_sync_fma_per_clock_16bit);
  if (r.plan.element_bytes == 2) add("wgmma, 16 bit", d.wgmma_fma_per_clock_16bit);
  if (r.plan.element_bytes == 1) add("wgmma, 8 bit", d.wgmma_fma_per_clock_8bit);
  return roofs;
}

Json banks_json(const BankMap& map) {
  Json json = {{"swizzled", map.swizzled}};
  Json& tiles = json["tiles"] = Json::array();
  for (const TileBanks& tile : map.tiles) {
    Json lanes = Json::array();
    for (const BankLane& lane : tile.lanes)
      lanes.push_back({{"row", lane.row}, {"byte", lane.byte}, {"bank", lane.bank}, {"num_banks", lane.num_banks}});
    tiles.push_back(
        {{"operand", to_string(tile.operand)}, {"ways", tile.ways}, {"lanes", lanes}, {"rows", tile.first_banks}});
  }
  json["accesses"] = to_json(map.kinds);
  return json;
}

Json registers_json(const SimulationReport& r) {
  const RegisterEstimate& e = r.registers;
  return {
      {"known", e.known},
      {"parts", Json::array({Json::array({"O", e.output}), Json::array({"S", e.scores}), Json::array({"Q", e.query}),
                             Json::array({"P", e.probabilities}), Json::array({"copies", e.copies}),
                             Json::array({"rows", e.rows}), Json::array({"other", e.other})})},
      {"demand", e.demand},
      {"given", r.registers_per_thread},
      {"least", e.least},
      {"limit", e.limit},
      {"spill_words", e.spill_words},
      {"parked_words", e.parked_words}};
}

Json occupancy_json(const SimulationReport& r) {
  const Occupancy& o = r.occupancy;
  const auto limit = [](const char* what, int ctas, double a_cta, double an_sm, const char* unit) {
    return Json{{"what", what}, {"ctas", ctas}, {"a_cta", a_cta}, {"an_sm", an_sm}, {"unit", unit}};
  };
  const DeviceSpec& d = r.device;
  return {{"ctas_per_sm", o.ctas_per_sm},
          {"limit", o.limit},
          {"warps_per_cta", r.plan.warps()},
          {"max_warps", d.max_warps_per_sm},
          {"limits",
           {limit("registers", o.by_registers, 1.0 * r.registers_per_thread * r.plan.threads(),
                  static_cast<double>(d.registers_per_sm), "registers"),
            limit("shared memory", o.by_smem, r.smem_bytes_per_cta, static_cast<double>(d.smem_bytes_per_sm), "B"),
            limit("warps", o.by_warps, r.plan.warps(), static_cast<double>(d.max_warps_per_sm), "warps"),
            limit("CTAs", o.by_ctas, 1, static_cast<double>(d.max_ctas_per_sm), "CTAs")}}};
}

/// Of SM 0 alone. Events as arrays, for there are thousands: [kind, slot, begin, end, query tile, key tile, batch,
/// head].
Json timeline_json(const SimulationReport& r) {
  Json events = Json::array();
  for (const TimelineEvent& e : r.walk.timeline)
    if (e.sm == 0)
      events.push_back({static_cast<int>(e.kind), e.slot, std::llround(e.begin), std::llround(e.end), e.q_tile,
                        e.key_tile, e.batch, e.head});
  return {{"cycles", r.cycles},
          {"clock_hz", r.device.sm_clock_hz},
          {"slots", r.ctas_per_sm},
          {"key_tiles_per_event", r.walk.key_tiles_per_event},
          {"ctas", r.walk.ctas},
          {"num_sms", r.device.num_sms},
          {"complete", events.size() < r.walk_options.max_timeline_events && r.walk.simulated_fraction >= 1},
          {"events", events}};
}

Json lengths_json(const LengthCurve& curve) {
  Json points = Json::array();
  for (const LengthPoint& p : curve.points)
    points.push_back({{"seqlen_q", p.seqlen_q},
                      {"seqlen_k", p.seqlen_k},
                      {"launched_time_us", p.time_us},
                      {"unfused_time_us", p.unfused_time_us},
                      {"dram_bytes", p.dram_bytes},
                      {"unfused_dram_bytes", p.unfused_dram_bytes},
                      {"compulsory_bytes", p.compulsory_bytes},
                      {"bound", p.bound}});
  return {{"points", points}, {"why_none", curve.why_none}};
}

Json device_json(const DeviceSpec& d) {
  Json fields = Json::array();
  for (const FieldOrigin& origin : d.origins)
    fields.push_back({{"field", origin.field}, {"from", origin.text}, {"estimated", origin.estimated}});
  return {{"name", d.name},
          {"description", d.description},
          {"num_sms", d.num_sms},
          {"launch_overhead_us", 1e6 * d.launch_overhead_seconds},
          {"fields", fields}};
}

/// What an SM holds: its banks, registers, CTAs, and what crosses between its shared memory and its registers.
void add_multiprocessor(Json& page, const SimulationReport& r) {
  const BankMap planned = bank_map(r.c, r.plan, r.plan.swizzled), other = bank_map(r.c, r.plan, !r.plan.swizzled);
  page["flow"]["fused"]["shared_read"] = planned.traffic.read_bytes;
  page["flow"]["fused"]["shared_write"] = planned.traffic.write_bytes;
  page["banks"] = {{"planned", banks_json(planned)}, {"other", banks_json(other)}};
  page["registers"] = registers_json(r);
  page["occupancy"] = occupancy_json(r);
  page["timeline"] = timeline_json(r);
}

/// The buffers of a device of cube and vector cores: what a query tile takes of each.
Json buffers_json(const SimulationReport& r) {
  const DeviceSpec& d = r.device;
  const BufferFootprint f = buffer_footprint(r.plan, d);
  const auto buffer = [](const char* name, const char* holds, const char* made, std::int64_t used,
                         std::int64_t capacity) {
    return Json{{"name", name}, {"holds", holds}, {"made", made}, {"used", used}, {"capacity", capacity}};
  };
  return {
      buffer("unified buffer", "S, P, P V, O and row state of a vector core",
             "rows of a vector core × (tile_n × (4 + bytes of P) + 2 × (headdim_v + 1) × 4)", f.unified_buffer,
             d.unified_buffer_bytes),
      buffer("L1", "Q, K, V and P of a cube core",
             "bytes of an element × (tile_m × headdim + stages × tile_n × (headdim + headdim_v) + tile_m × tile_n)",
             f.l1, d.l1_bytes),
      buffer("L0A", "left operand", "tile_m × the 32 bytes of a matrix step", f.l0a, d.l0a_bytes),
      buffer("L0B", "right operand", "the larger of tile_n and headdim_v × the 32 bytes of a matrix step", f.l0b,
             d.l0b_bytes),
      buffer("L0C", "the larger of S and P V", "tile_m × the larger of tile_n and headdim_v × 4", f.l0c, d.l0c_bytes)};
}

}  // namespace

Json page_data(const SimulationReport& r) {
  Json page = {{"predict", to_json(r)},
               {"cores", r.device.kind == DeviceKind::cube_vector},
               {"command", command_line(r.c)},
               {"device", device_json(r.device)},
               {"flow", flow_json(r)},
               {"roofs", roofs_json(r)},
               {"lengths", lengths_json(length_curve(r))}};
  if (r.device.kind == DeviceKind::cube_vector)
    page["buffers"] = buffers_json(r);
  else
    add_multiprocessor(page, r);
  return page;
}

}  // namespace attest
