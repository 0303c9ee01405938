#include "attest/simulator/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "address.h"
#include "attest/plan/launch.h"
#include "attest/problem/error.h"
#include "attest/simulator/case_counts.h"
#include "attest/simulator/compulsory.h"
#include "attest/simulator/step_time.h"
#include "attest/simulator/unified_buffer.h"
#include "code_fetch.h"
#include "combine_time.h"
#include "compiled_fa2.h"
#include "compiled_registers.h"
#include "copy_time.h"
#include "in_step.h"
#include "kernel_code.h"
#include "missing_words.h"
#include "refusals.h"
#include "walk_options.h"
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

}  // namespace

void compare_with_unfused(SimulationReport& r) {
  r.unfused = unfused_cost(r.c.problem, r.device);
  const double unfused_bytes = r.unfused.dram_read_bytes + r.unfused.dram_write_bytes;
  // the unfused kernels' code is not known
  const double fused_bytes = r.dram_read_bytes - r.code_read_bytes + r.dram_write_bytes;
  r.hbm_reduction_vs_unfused = unfused_bytes == 0 ? 0 : 1 - fused_bytes / unfused_bytes;
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
  const std::optional<PlaceCounts> code = compiled_instructions(plan, c, device);
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
  options.frame = compiled_frame(spilling, plan_name, c, device);
  const int frame_words = frame_of(options.frame, spilling).words;
  const FramePlaces places{MemoryMap(device, options.through_ncu, std::int64_t{4} * frame_words), frame_words};
  // where n CTAs share an SM and walk different heads, at [n - 1], and where those of the grid walk one
  std::vector<MissingWords> by_sharing(static_cast<std::size_t>(r.ctas_per_sm));
  MissingWords& missing = by_sharing[static_cast<std::size_t>(ctas) - 1];
  MissingWords missing_together;
  if (counts.key_tiles > 0) {
    const double masked = static_cast<double>(counts.masked_key_tiles) / static_cast<double>(counts.key_tiles);
    Counts executed = count_with_keys(c, plan);  // what the others do is in no key tile's way
    executed.masked_key_tiles =
        std::max(counts.masked_key_tiles, std::min(counts.key_tiles, plan.masked_steps * ctas_of(runs)));
    double code_waits = 0;  // a key tile
    const int of_columns = compiled_column_instructions(plan, c, device);
    const std::vector<AlonePhase> alone = compiled_alone(plan, plan_name, c, device);
    const auto demand_of = [&](const MissingWords& of) {
      CaseParts parts = parts_of(c);
      parts.missing_arguments = of.arguments;
      parts.column_instructions = of_columns;
      StepDemand d = step_demand(plan, device, executed, r.registers.spill_words, parts);
      d.l2 = l2_busy_bytes(of.words * line_bytes, spilling.spill_words_per_key_tile * line_bytes, device) /
             l2_bytes_per_clock(device);
      // loads that L1 serves wait as long for nobody
      d.l2_alone =
          std::lerp(d.l2, std::min(d.l2, l2_alone_cycles(of.words, spilling.spill_words_per_key_tile)), of.part);
      d.l2_waited = std::min(1.0, of.words) * d.l2;  // where none misses none waits behind stores
      d.waits += of.waits + code_waits;
      // phases have no wait for words that L1 has evicted; kernels miss next to none of theirs or, where spill is
      // forced, dozens
      if (of.words < 1) d.alone = alone;
      return d;
    };
    // on average (cta_starts in docs/results/h200-sm.md)
    constexpr double cycles_between_ctas_of_an_sm = 19;
    // what is gone hangs on how long a key tile takes, here without waits for code, and that on what is gone
    const auto missing_of = [&](int n, bool on_one_head) {
      MissingWords at_first = missing_words(r, masked, n, on_one_head, places, {});
      if (at_first.waits == 0 || copies_by_call(plan)) return at_first;
      const StepDemand d = demand_of(at_first);
      const SpillCycles times{.key_tile = cycles_per_key_tile(d, plan, device, n),
                              .around = cycles_per_cta(d, plan, device) / 2,
                              .between = cycles_between_ctas_of_an_sm};
      return missing_words(r, masked, n, on_one_head, places, times);
    };
    missing = missing_of(ctas, false);
    missing_together = copies_by_call(plan) && ctas > 1 ? missing_of(ctas, true) : missing;
    const bool uses_l1 = r.registers.loaded.whole + r.registers.loaded.masked > 0 || copies_by_call(plan);
    for (int n = 1; n <= r.ctas_per_sm; ++n)
      if (n != ctas && uses_l1) by_sharing[static_cast<std::size_t>(n) - 1] = missing_of(n, false);
    demand = demand_of(missing);
    const auto cycles = [&](const auto& missing_at) {
      std::vector<double> of_sharing;
      for (int n = 1; n <= r.ctas_per_sm; ++n)
        of_sharing.push_back(cycles_per_key_tile(demand_of(missing_at(n)), plan, device, n));
      return of_sharing;
    };
    const auto apart = [&](int n) -> const MissingWords& { return by_sharing[static_cast<std::size_t>(n) - 1]; };
    options.cycles_per_key_tile = cycles(apart);
    if (plan.producer_warps == 0 && walk_apart(p, plan)) {
      const double tiles = static_cast<double>(counts.key_tiles) / static_cast<double>(ctas_of(runs));
      const double of_cta = tiles * options.cycles_per_key_tile[static_cast<std::size_t>(ctas) - 1] +
                            cycles_per_cta(demand, plan, device);
      code_waits = code_wait_cycles(walked_code_bytes(demand, plan, device, runs, code), of_cta, ctas, device) / tiles;
      demand = demand_of(missing);
      options.cycles_per_key_tile = cycles(apart);
    }
    if (missing_together.copies > 0)
      options.cycles_together = cycles([&](int) -> const MissingWords& { return missing_together; });
    options.waits_per_key_tile.clear();
    for (int n = 1; n <= r.ctas_per_sm; ++n) options.waits_per_key_tile.push_back(demand_of(apart(n)).waits);
    options.longer_from_dram = longer_from_dram(demand_of(apart(1)), plan, device);
    options.paces.clear(), options.l2_busy.clear();
    for (int n = 1; n <= r.ctas_per_sm; ++n) options.l2_busy.push_back(l2_busy(demand_of(apart(n)), plan, device, n));
    for (int n = 1; n <= r.ctas_per_sm; ++n)
      options.paces.push_back(sm_paces(demand_of(apart(n)), plan, device, n, options.l2_busy.back()));
  } else {
    options.cycles_per_key_tile.resize(static_cast<std::size_t>(r.ctas_per_sm));
  }
  options.l1_serves = options.l1_serves_beside = 0;
  for (const Operand x : {Operand::k, Operand::v}) {
    if (plan.copy_bytes(x) == 16 || missing_together.copies == 0) continue;
    const double served =
        missing_together.copies * plan.tile_bytes(x) / (plan.tile_bytes(Operand::k) + plan.tile_bytes(Operand::v));
    options.l1_serves += served, options.l1_serves_beside += served * shared_with_head_beside(r, x);
  }
  // what a call before has left of it goes with what does not fit a side of L2
  const bool code_is_cold = !options.warm || compulsory_bytes(p).total() > device.l2_bytes / device.l2_partitions;
  ColdCode cold;
  if (counts.key_tiles > 0)
    cold = cold_code(compiled_code_bytes(plan, plan_name, c, device).value_or(code_bytes(plan)), demand, plan, device,
                     runs, parts_of(c).pages, code);
  options.in_step = keeps_in_step(plan, device, c.layout.page_size > 0);
  options.waited_loads = demand.loads;
  options.cycles_per_cta = cycles_per_cta(demand, plan, device) + missing.waits_of_cta;
  options.spill_uses.clear();
  if (counts.key_tiles > 0)
    for (const MissingWords& of : by_sharing)
      options.spill_uses.push_back(spill_uses_of(r, spilling, options.frame, of));
  r.walk = walk_tiles(c, spilling, device, r.ctas_per_sm, options);

  const auto by = [&](Operand x) {
    return static_cast<double>(counts.global_sectors[static_cast<std::size_t>(x)]) * 32;
  };
  const auto by_warps = [&](double of_warp, std::int64_t times) {
    return of_warp * plan.num_warps * static_cast<double>(times);
  };
  const auto by_all_warps = [&](const PlaceCounts& n) {
    const double around =
        by_warps(n.early, r.walk.ctas - r.walk.ctas_with_rows) + by_warps(n.once, r.walk.ctas_with_rows);
    if (!n.tiles.empty()) return around + plan.num_warps * of_all_ctas(n, runs, r.walk.key_tiles);
    return around + by_warps(n.run, runs.all) + by_warps(n.enters, runs.whole) +
           by_warps(n.masked, counts.masked_key_tiles) + by_warps(n.whole, r.walk.key_tiles - counts.masked_key_tiles) +
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
  const auto of_all_ctas_missing = [&](double MissingWords::*figure) {
    double mean = r.walk.together * (missing_together.*figure - missing.*figure);
    if (r.walk.shared.empty()) mean += missing.*figure;  // no CTA with a key tile was walked
    for (std::size_t n = 0; n < r.walk.shared.size(); ++n) mean += r.walk.shared[n] * by_sharing[n].*figure;
    return mean;
  };
  PlaceCounts rescaling, loaded_around = r.registers.loaded;  // key tiles
  loaded_around.masked = loaded_around.whole = 0;
  loaded_around.tiles.clear();
  std::swap(rescaling.masked_rescales, loaded_around.masked_rescales);
  std::swap(rescaling.whole_rescales, loaded_around.whole_rescales);
  const double missed_bytes =
      spilled_bytes(of_all_ctas_missing(&MissingWords::words), r.walk.key_tiles) +
      of_all_ctas_missing(&MissingWords::rescale) * line_bytes * by_all_warps(rescaling) +
      of_all_ctas_missing(&MissingWords::finish) * line_bytes * by_all_warps(loaded_around) +
      line_bytes * lines_missed_in_lives(r, missing, places) * static_cast<double>(r.walk.ctas_with_rows);
  // neighbours do not ask for these together
  const double unmerged = r.walk.bias_read_bytes + of_splits + missed_bytes + r.walk.in_part_bytes;
  const double asked = by(Operand::q) + by(Operand::k) + by(Operand::v) + static_cast<double>(counts.atomic_bytes);
  r.sm_read_bytes = asked + unmerged - r.walk.l1_served * (by(Operand::k) + by(Operand::v));
  r.sm_write_bytes = by(Operand::o) + static_cast<double>(counts.lse_bytes + counts.atomic_bytes) + r.spill_store_bytes;
  CombineWork combine;
  if (plan.num_splits > 1) {
    r.kernels = 2;
    double rows = 0;
    for (const Lengths& n : lengths_of(p)) rows += static_cast<double>(n.entries * n.queries * p.nheads);
    combine = combine_work(p, plan, r.walk);
    const auto lse_sectors = static_cast<double>(combined_lse_sectors(c, plan, device, combine.ctas));
    r.sm_write_bytes += r.walk.partial_bytes + static_cast<double>(compulsory_bytes(p).write) - 4 * rows +
                        LineSampler::sector_bytes * lse_sectors;
  }
  r.l2_crossing_bytes = r.walk.l2_crossing_bytes;
  if (r.walk.ctas > 0 && device.l2_partitions > 1) r.l2_crossing_bytes += r.kernels * device.launch_crossing_bytes;
  r.l2_read_bytes = unmerged;
  if (r.walk.sm_read_bytes != 0) r.l2_read_bytes += asked * (r.walk.l2_read_bytes / r.walk.sm_read_bytes);
  if (code_is_cold && r.walk.ctas > 0) r.code_read_bytes = cold.bytes;  // of combine()'s nothing is known
  r.dram_read_bytes = r.walk.dram_read_bytes + r.code_read_bytes;
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
      (code_is_cold ? cold.cycles : 0) + std::max({r.walk.cycles, of_dram, l2_cycles});
  r.time_us = 1e6 * r.cycles / device.sm_clock_hz;
  r.utilisation = utilisation_of(busy, r.cycles, device);
  r.bound = bound_of(r.utilisation);

  compare_with_unfused(r);
  return r;
}

}  // namespace attest
