#include "missing_words.h"

#include <algorithm>

#include "address.h"
#include "attest/simulator/step_time.h"
#include "compiled_registers.h"
#include "copy_time.h"
#include "l1_turn.h"
#include "spill_uses.h"
#include "walk_options.h"

namespace attest {
namespace {

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

}  // namespace

MissingWords missing_words(const SimulationReport& r, double masked, int ctas, bool together,
                           const FramePlaces& places) {
  const PlaceCounts& loads = r.registers.loaded;
  const SpillTraces traces = compiled_traces(r.plan, r.plan_name, r.c, r.device);
  // what shared memory leaves to L1 is for as many CTAs as an SM may hold, also where a grid has fewer
  const int lines = l1_lines(r.plan.smem_bytes(), r.ctas_per_sm, r.device);
  const bool calls = copies_by_call(r.plan), in_step = keeps_in_step(r.plan, r.device, r.c.layout.page_size > 0);
  const auto missing = [&](int words, const SpillTrace& trace) {
    L1Turn turn;
    if (calls)
      turn = l1_turn(r.plan, r.device, trace, {row_stride(r, Operand::k), row_stride(r, Operand::v)}, lines, places,
                     ctas, together, in_step);
    if (trace.accesses.empty()) {
      turn.loads = missing_part(words, r.plan.num_warps, ctas, lines);
    } else if (!calls) {
      const SpillMisses alone = spill_misses(trace, r.plan.num_warps, ctas, lines, places);
      turn.loads = alone.part, turn.waits = alone.waits, turn.of_access = alone.of_access;
      turn.after = alone.after;
    }
    return turn;
  };
  const L1Turn of_masked = missing(loads.masked, traces.masked), of_whole = missing(loads.whole, traces.whole);
  // what is stored in a key tile is loaded soon after
  const int parked_masked = std::max(0, loads.masked - r.registers.stored.masked),
            parked_whole = std::max(0, loads.whole - r.registers.stored.whole);
  const double driven =
      driven_out(std::max(parked_masked, parked_whole), ctas * r.plan.num_warps, through_l1(r, ctas), 1, lines, places);
  const auto words = [&](int loaded, int parked, double part) { return loaded * part + parked * (1 - part) * driven; };
  const bool masked_last = r.c.problem.window_left >= 0;
  const double loaded = masked * loads.masked + (1 - masked) * loads.whole,
               missed = masked * words(loads.masked, parked_masked, of_masked.loads) +
                        (1 - masked) * words(loads.whole, parked_whole, of_whole.loads);
  return {missed,
          masked * of_masked.waits + (1 - masked) * of_whole.waits,
          loads.whole == 0 ? 0 : of_whole.waits * loads.of_cta() / loads.whole,
          loaded == 0 ? 0 : missed / loaded,
          masked_last ? of_masked.after : of_whole.after,
          of_whole.of_access,
          of_masked.of_access,
          masked_last ? parked_masked * (1 - of_masked.loads) : parked_whole * (1 - of_whole.loads),
          masked * parked_masked + (1 - masked) * parked_whole,
          of_whole.arguments,
          of_whole.copies};
}

double driven_out_by_output(const SimulationReport& r, int words, int ctas, const FramePlaces& places) {
  constexpr int uses = 2;  // of a word at least, while none of them ends: what was driven out has been hit since
  const double others = std::clamp(static_cast<double>(r.walk.ctas) / static_cast<double>(r.device.num_sms), 1.0,
                                   static_cast<double>(r.ctas_per_sm)) -
                        1;
  if (others <= 0) return 0;
  const bool partial = r.plan.num_splits > 1;  // rows of a head that follow each other
  const int row_bytes = static_cast<int>(r.c.problem.headdim_v) * (partial ? 4 : r.plan.output_bytes());
  const PassingRows o{1, r.plan.tile_m, row_bytes, partial ? row_bytes : row_stride(r, Operand::o)};
  return others * driven_out(words, ctas * r.plan.num_warps, {&o, 1}, uses,
                             l1_lines(r.plan.smem_bytes(), r.ctas_per_sm, r.device), places);
}

SpillUses spill_uses_of(const SimulationReport& r, const KernelPlan& spilling, const std::optional<LocalFrame>& frame,
                        const MissingWords& missing) {
  const SpillTraces traces = compiled_traces(r.plan, r.plan_name, r.c, r.device);
  const auto stores = std::ranges::count(traces.whole.accesses, SpillAccess::Kind::store, &SpillAccess::kind);
  if (stores > 0 && stores == spilling.spill_words_per_key_tile)
    return traced_spill_uses(traces, {missing.of_whole, missing.of_masked, missing.part, missing.after});
  const int words = spilling.spill_words_per_key_tile, of_cta = spilling.spill_words_per_cta;
  const LocalFrame places = frame_of(frame, spilling);
  return untraced_spill_uses(words, places, std::min<double>(std::min(of_cta, places.words), missing.parked_loads),
                             missing.part);
}

}  // namespace attest
