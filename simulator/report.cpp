#include "attest/simulator/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "address.h"
#include "attest/plan/launch.h"
#include "attest/problem/error.h"
#include "attest/simulator/case_counts.h"
#include "attest/simulator/compulsory.h"
#include "attest/simulator/step_time.h"
#include "attest/simulator/unified_buffer.h"
#include "code_fetch.h"
#include "combine_time.h"
#include "compiled_registers.h"
#include "copy_time.h"
#include "l1_turn.h"
#include "refusals.h"
#include "spill_uses.h"
#include "xu_instructions.h"

namespace attest {
namespace {

/// The plan with spill as the register estimate has it, for the models that only know plans.
KernelPlan with_spill(KernelPlan plan, const RegisterEstimate& registers) {
  if (registers.known) return plan;
  plan.spill_words_per_key_tile = registers.spill_words;
  plan.spill_words_per_cta = registers.parked_words;
  return plan;
}

BusyCycles busy_cycles(const SimulationReport& r, const StepDemand& d) {
  const double warp_steps =
      static_cast<double>(r.walk.key_tiles) * r.plan.num_warps / static_cast<double>(r.device.num_sms);
  const double of_scheduler = warp_steps / static_cast<double>(r.device.warp_schedulers_per_sm);
  return {.tensor = d.tensor * of_scheduler,
          .exp = d.exp * of_scheduler,
          .fma = d.fma * of_scheduler,
          .alu = d.alu * of_scheduler,
          .issue = d.issue * of_scheduler,
          .smem = (d.smem + d.operands) * warp_steps,
          .l2_bytes = l2_busy_bytes(r.l2_read_bytes, r.sm_write_bytes, r.device),
          .dram_bytes = r.dram_read_bytes + r.dram_write_bytes};
}

std::int64_t row_stride(const SimulationReport& r, Operand x) {
  const bool query = x == Operand::q || x == Operand::o;
  const Problem& p = r.c.problem;
  return make_address(r.c.layout, r.plan.bytes(x), 0, 1, 1, query ? p.nheads : p.nheads_k,
                      x == Operand::q || x == Operand::k ? p.headdim : p.headdim_v)
      .row_stride;
}

/// What a key tile's synchronous copies bring through L1, of all CTAs of an SM. Copies below 16 bytes are in l1_turn.h.
std::vector<PassingRows> through_l1(const SimulationReport& r, int ctas) {
  if (r.plan.copy_kind != CopyKind::synchronous) return {};
  const auto tiles = [&](Operand x) {
    return PassingRows{ctas, r.plan.tile_n, r.plan.valid_columns(x) * r.plan.bytes(x), row_stride(r, x)};
  };
  return {tiles(Operand::k), tiles(Operand::v)};
}

/// Of a key tile, on average: words that a thread loads and L1 does not have, and cycles that its warp waits for them
/// alone where it is known in which order it does; of what it loads once a CTA it waits as long for a word. `parked`
/// are words of a CTA that another one's O may drive out.
struct MissingWords {
  double words = 0, waits = 0, waits_of_cta = 0;
  double part = 0;                   // of those that it loads
  std::vector<double> of_access;     // of the warps', by the accesses of a whole tile's trace
  double parked = 0;                 // that L1 has until then
  double parked_loads = 0;           // words of a CTA that the key tile loads
  double arguments = 0, copies = 0;  // of calls that copy, as l1_turn.h has them
};
MissingWords missing_words(const SimulationReport& r, double masked, int ctas, bool together) {
  const SpillWords& loads = r.registers.loaded;
  const SpillTraces traces = compiled_traces(r.plan, r.plan_name, r.c, r.device);
  // what shared memory leaves to L1 is for as many CTAs as an SM may hold, also where a grid has fewer
  const int lines = l1_lines(r.plan.smem_bytes(), r.ctas_per_sm, r.device);
  const bool calls = copies_by_call(r.plan), in_step = keeps_in_step(r.plan, r.device, r.c.layout.page_size > 0);
  struct Turn : L1Turn {
    std::vector<double> of_access;
  };
  const auto missing = [&](int words, const SpillTrace& trace) {
    const bool known = !trace.accesses.empty();
    Turn turn;
    if (calls)
      turn = {l1_turn(r.plan, r.device, trace, {row_stride(r, Operand::k), row_stride(r, Operand::v)}, lines, ctas,
                      together, in_step),
              {}};
    if (!known) turn.loads = missing_part(words, r.plan.num_warps, ctas, lines);
    if (known && calls) turn.of_access.assign(trace.accesses.size(), turn.loads);
    if (!known || calls) return turn;
    const SpillMisses alone = spill_misses(trace, r.plan.num_warps, ctas, lines);
    turn.loads = alone.part, turn.waits = alone.waits, turn.of_access = alone.of_access;
    return turn;
  };
  const Turn of_masked = missing(loads.masked, traces.masked), of_whole = missing(loads.whole, traces.whole);
  // what is stored in a key tile is loaded soon after
  const int parked_masked = std::max(0, loads.masked - r.registers.stored.masked),
            parked_whole = std::max(0, loads.whole - r.registers.stored.whole);
  const double driven =
      driven_out(std::max(parked_masked, parked_whole), ctas * r.plan.num_warps, through_l1(r, ctas), 1, lines);
  const auto words = [&](int loaded, int parked, double part) { return loaded * part + parked * (1 - part) * driven; };
  const bool masked_last = r.c.problem.window_left >= 0;
  const double loaded = masked * loads.masked + (1 - masked) * loads.whole,
               missed = masked * words(loads.masked, parked_masked, of_masked.loads) +
                        (1 - masked) * words(loads.whole, parked_whole, of_whole.loads);
  return {missed,
          masked * of_masked.waits + (1 - masked) * of_whole.waits,
          loads.whole == 0 ? 0 : of_whole.waits * loads.of_cta() / loads.whole,
          loaded == 0 ? 0 : missed / loaded,
          of_whole.of_access,
          masked_last ? parked_masked * (1 - of_masked.loads) : parked_whole * (1 - of_whole.loads),
          masked * parked_masked + (1 - masked) * parked_whole,
          of_whole.arguments,
          of_whole.copies};
}

/// How often each of a CTA's parked words is loaded anew because the O of its SM's others, each of which ends once in
/// its life, has driven it out of L1.
double driven_out_by_output(const SimulationReport& r, int words, int ctas) {
  constexpr int uses = 2;  // of a word at least, while none of them ends: what was driven out has been hit since
  const double others = std::clamp(static_cast<double>(r.walk.ctas) / static_cast<double>(r.device.num_sms), 1.0,
                                   static_cast<double>(r.ctas_per_sm)) -
                        1;
  if (others <= 0) return 0;
  const bool partial = r.plan.num_splits > 1;  // rows of a head that follow each other
  const int row_bytes = static_cast<int>(r.c.problem.headdim_v) * (partial ? 4 : r.plan.output_bytes());
  const PassingRows o{1, r.plan.tile_m, row_bytes, partial ? row_bytes : row_stride(r, Operand::o)};
  return others * driven_out(words, ctas * r.plan.num_warps, {&o, 1}, uses,
                             l1_lines(r.plan.smem_bytes(), r.ctas_per_sm, r.device));
}

}  // namespace

void compare_with_unfused(SimulationReport& r) {
  r.unfused = unfused_cost(r.c.problem, r.device);
  const double unfused_bytes = r.unfused.dram_read_bytes + r.unfused.dram_write_bytes;
  r.hbm_reduction_vs_unfused = unfused_bytes == 0 ? 0 : 1 - (r.dram_read_bytes + r.dram_write_bytes) / unfused_bytes;
  r.unfused_speedup = r.time_us == 0 ? 0 : r.unfused.time_us / (r.time_us + 1e6 * r.device.launch_overhead_seconds);
}

SimulationReport simulate(const Case& c, const KernelPlan& given, const DeviceSpec& device, std::string_view plan_name,
                          const TileWalkOptions& effort) {
  const KernelPlan plan = with_features(given, c);
  check(c, plan, device);
  if (device.kind == DeviceKind::cube_vector && effort.warm)
    throw InvalidInput("warm", "L2", fmt::format("is not walked on {}", device.name));
  if (device.kind == DeviceKind::cube_vector) return simulate_unified_buffer(c, plan, device, plan_name);
  const Problem& p = c.problem;
  SimulationReport r;
  r.c = c;
  r.plan_name = plan_name;
  r.plan = plan;
  r.device = device;

  r.registers = estimate_registers(plan, device);
  const std::optional<CompiledSpill> compiled = compiled_spill(plan, plan_name, c, device);
  if (compiled) r.registers.stored = compiled->stored, r.registers.loaded = compiled->loaded;
  r.occupancy = occupancy(plan, r.registers.registers_per_thread, device);
  r.registers_per_thread = r.registers.registers_per_thread;
  r.spill_bytes_per_thread = 4 * r.registers.spill_words;
  r.parked_bytes_per_thread = 4 * r.registers.parked_words;
  r.ctas_per_sm = r.occupancy.ctas_per_sm;
  check_resident(r.ctas_per_sm, device);
  r.smem_bytes_per_cta = static_cast<int>(plan.smem_bytes() + device.smem_reserved_bytes_per_cta);

  const KernelPlan spilling = with_spill(plan, r.registers);
  const Counts counts = count_case(c, plan);
  const KeyRuns runs = count_key_runs(c, plan);
  StepDemand demand;
  TileWalkOptions& options = r.walk_options;
  options = effort;
  constexpr int line_bytes = 4 * 32;
  // that the grid gives an SM together, to the nearest
  const int ctas = static_cast<int>(
      std::clamp<std::int64_t>((2 * ctas_of(runs) + device.num_sms) / (2 * device.num_sms), 1, r.ctas_per_sm));
  MissingWords missing, missing_together;  // where CTAs of an SM walk different heads, and one
  if (counts.key_tiles > 0) {
    const double masked = static_cast<double>(counts.masked_key_tiles) / static_cast<double>(counts.key_tiles);
    missing = missing_words(r, masked, ctas, false);
    missing_together = copies_by_call(plan) && ctas > 1 ? missing_words(r, masked, ctas, true) : missing;
    Counts executed = counts;
    executed.masked_key_tiles =
        std::max(counts.masked_key_tiles, std::min(counts.key_tiles, plan.masked_steps * ctas_of(runs)));
    double code_waits = 0;  // a key tile
    const auto demand_of = [&](const MissingWords& of) {
      CaseParts parts = parts_of(c);
      parts.missing_arguments = of.arguments;
      StepDemand d = step_demand(plan, device, executed, r.registers.spill_words, parts);
      d.l2 = l2_busy_bytes(of.words * line_bytes, spilling.spill_words_per_key_tile * line_bytes, device) /
             l2_bytes_per_clock(device);
      d.l2_waited = std::min(1.0, of.words) * d.l2;  // where none misses none waits behind stores
      d.waits += of.waits + code_waits;
      return d;
    };
    demand = demand_of(missing);
    const auto cycles_of = [&](const StepDemand& d) {
      std::vector<double> cycles;
      for (int n = 1; n <= r.ctas_per_sm; ++n) cycles.push_back(cycles_per_key_tile(d, plan, device, n));
      return cycles;
    };
    options.cycles_per_key_tile = cycles_of(demand);
    if (plan.producer_warps == 0 && walk_apart(p, plan)) {
      const double tiles = static_cast<double>(counts.key_tiles) / static_cast<double>(ctas_of(runs));
      const double cycles = tiles * options.cycles_per_key_tile.back() + cycles_per_cta(demand, plan, device);
      code_waits =
          code_wait_cycles(walked_code_bytes(demand, plan, device, runs), cycles, r.ctas_per_sm, device) / tiles;
      demand = demand_of(missing);
      options.cycles_per_key_tile = cycles_of(demand);
    }
    if (missing_together.copies > 0) options.cycles_together = cycles_of(demand_of(missing_together));
  } else {
    options.cycles_per_key_tile.resize(static_cast<std::size_t>(r.ctas_per_sm));
  }
  const auto narrow_bytes = [&](Operand x) { return plan.copy_bytes(x) < 16 ? plan.tile_bytes(x) : 0; };
  options.l1_serves = missing_together.copies * (narrow_bytes(Operand::k) + narrow_bytes(Operand::v)) /
                      (plan.tile_bytes(Operand::k) + plan.tile_bytes(Operand::v));
  options.l1_lets_go = missing.arguments > 0;
  options.in_step = keeps_in_step(plan, device, c.layout.page_size > 0);
  options.waits_per_key_tile = demand.waits;
  options.waited_loads = demand.loads;
  options.cycles_per_cta = cycles_per_cta(demand, plan, device) + missing.waits_of_cta;
  options.frame = compiled_frame(spilling, plan_name, c, device);
  const SpillTrace trace = compiled_traces(plan, plan_name, c, device).whole;
  const auto traced = std::ranges::count(trace.accesses, SpillAccess::Kind::store, &SpillAccess::kind);
  options.spill_uses =
      traced != spilling.spill_words_per_key_tile || traced == 0
          ? untraced_spill_uses(spilling.spill_words_per_key_tile,
                                options.frame ? options.frame->of_tile : spilling.spill_words_per_key_tile,
                                std::min(spilling.spill_words_per_cta, static_cast<int>(missing.parked_loads)),
                                missing.part)
          : traced_spill_uses(trace, missing.of_access);
  r.walk = walk_tiles(c, spilling, device, r.ctas_per_sm, options);

  const auto by = [&](Operand x) {
    return static_cast<double>(counts.global_sectors[static_cast<std::size_t>(x)]) * 32;
  };
  const auto by_warps = [&](double of_warp, std::int64_t times) {
    return of_warp * plan.num_warps * static_cast<double>(times);
  };
  const auto by_all_warps = [&](const SpillWords& n) {
    return by_warps(n.early, r.walk.ctas - r.walk.ctas_with_rows) + by_warps(n.once, r.walk.ctas_with_rows) +
           by_warps(n.run, runs.all) + by_warps(n.enters, runs.whole) + by_warps(n.masked, counts.masked_key_tiles) +
           by_warps(n.whole, r.walk.key_tiles - counts.masked_key_tiles) +
           by_warps(n.masked_rescales, runs.masked_first) +  // O is rescaled in the first key tile, and seldom after
           by_warps(n.whole_rescales, runs.whole_first);
  };
  const auto spilled_bytes = [&](double words, std::int64_t times) { return line_bytes * by_warps(words, times); };
  const std::int64_t persistent =
      plan.persistence == Persistence::none ? 0 : std::min(r.walk.ctas, device.num_sms * r.ctas_per_sm);
  r.spill_store_bytes = line_bytes * by_all_warps(r.registers.stored) +
                        spilled_bytes(plan.spill_words_at_start, persistent) +
                        LineSampler::sector_bytes * static_cast<double>(plan.producer_spill_sectors * r.walk.ctas);
  r.spill_load_bytes = line_bytes * by_all_warps(r.registers.loaded);
  if (compiled) {
    r.spill_store_instructions = by_all_warps(compiled->store_instructions);
    r.spill_load_instructions = by_all_warps(compiled->load_instructions);
  }
  const double of_splits = r.walk.partial_bytes + r.walk.partial_lse_bytes;
  const double words_missing = missing.words + r.walk.together * (missing_together.words - missing.words);
  const double missed_bytes =
      spilled_bytes(words_missing, r.walk.key_tiles) +
      spilled_bytes(missing.parked * driven_out_by_output(r, static_cast<int>(std::ceil(missing.parked)), ctas),
                    r.walk.ctas_with_rows);
  // neighbours do not ask for these together
  const double unmerged = r.walk.bias_read_bytes + of_splits + missed_bytes;
  const double asked = by(Operand::q) + by(Operand::k) + by(Operand::v) + static_cast<double>(counts.atomic_bytes);
  r.sm_read_bytes = asked + unmerged - r.walk.l1_served * (by(Operand::k) + by(Operand::v));
  r.sm_write_bytes = by(Operand::o) + static_cast<double>(counts.lse_bytes + counts.atomic_bytes) + r.spill_store_bytes;
  CombineWork combine;
  if (plan.num_splits > 1) {
    r.kernels = 2;
    // combine() has a warp a row, which stores one word of LSE
    double rows = 0;
    for (const Lengths& n : lengths_of(p)) rows += static_cast<double>(n.entries * n.queries * p.nheads);
    constexpr int rest_of_sector = 32 - 4;
    r.sm_write_bytes += r.walk.partial_bytes + static_cast<double>(compulsory_bytes(p).write) + rest_of_sector * rows;
    combine = combine_work(p, plan, r.walk);
  }
  r.l2_crossing_bytes = r.walk.l2_crossing_bytes;
  r.l2_read_bytes = unmerged;
  if (r.walk.sm_read_bytes != 0) r.l2_read_bytes += asked * (r.walk.l2_read_bytes / r.walk.sm_read_bytes);
  r.dram_read_bytes = r.walk.dram_read_bytes;
  r.dram_write_bytes = r.walk.dram_write_bytes;
  r.compulsory_bytes = static_cast<double>(compulsory_bytes(p).total());
  r.smem_wavefronts = static_cast<double>(counts.smem_wavefronts);
  r.smem_wavefronts_ideal = static_cast<double>(counts.smem_wavefronts_ideal);
  r.smem_accesses = wavefronts_by_access(counts);
  r.exp_count = static_cast<double>(counts.exponentials);
  r.xu_instructions = xu_instructions(r, counts, runs);
  r.flops = flops_of_pairs(p, visible_pairs(p));
  r.flops_unmasked = flops_of_pairs(p, all_pairs(p));
  r.flops_executed = 2.0 * static_cast<double>(counts.matrix_steps) * 256 * plan.k_step();

  const BusyCycles busy = busy_cycles(r, demand);
  const double of_dram = dram_cycles(r.dram_read_bytes, r.dram_write_bytes, device);
  const double l2_cycles = busy.l2_bytes / device.l2_bytes_per_second * device.sm_clock_hz;
  r.cycles =
      combine_cycles(combine, device) +
      (r.walk.ctas == 0 ? 0
                        : launch_cycles(static_cast<double>(r.walk.ctas), device) + cycles_around_ctas(plan, device)) +
      std::max({r.walk.cycles, of_dram, l2_cycles});
  r.time_us = 1e6 * r.cycles / device.sm_clock_hz;
  r.utilisation = utilisation_of(busy, r.cycles, device);
  r.bound = bound_of(r.utilisation);

  compare_with_unfused(r);
  return r;
}

}  // namespace attest
