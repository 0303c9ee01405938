#include "missing_words.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "address.h"
#include "compiled_registers.h"
#include "copy_time.h"
#include "grid.h"
#include "in_step.h"
#include "l1_lives.h"
#include "l1_turn.h"
#include "schedule.h"
#include "spill_uses.h"
#include "walk_options.h"

namespace attest {
namespace {

constexpr int sms_sampled = SampledSms::n;

/// Of a sample of SMs, where in the tensors their CTAs are.
class OnSms {
 public:
  OnSms(const SimulationReport& r, int ctas)
      : grid_(r.c, r.plan), schedule_(grid_, r.device, r.ctas_per_sm), ctas_(ctas) {}

  /// Each SM's. `together`: on one head's keys; else on different heads', or, where there is but one, far apart in it.
  std::vector<KeysAt> keys(bool together) const {
    const Problem& p = grid_.p;
    std::vector<KeysAt> all;
    for (int sm = 0; sm < sms_sampled; ++sm) {
      std::set<std::int64_t> taken;  // heads, batch entry by batch entry
      for (int cta = 0; cta < ctas_; ++cta) {
        const Task task = task_of(sm, together ? 0 : cta);
        std::int64_t number = task.batch * p.nheads_k + grid_.key_head(task.head), others = 0;
        while (!together && !taken.insert(number).second && ++others < p.batch * p.nheads_k)
          number = (number + 1) % (p.batch * p.nheads_k);
        const std::int64_t batch = number / p.nheads_k, head = number % p.nheads_k;
        const std::int64_t tiles = grid_.entry(batch).seqlen_k / grid_.plan.tile_n;
        const bool but_one = others == p.batch * p.nheads_k;
        const std::int64_t tile =
            (sm * tiles / sms_sampled + (but_one ? cta * tiles / ctas_ : 0)) % std::max<std::int64_t>(tiles, 1);
        const std::int64_t row = tile * grid_.plan.tile_n;
        all.push_back(
            {grid_.k.row(batch, head, row), grid_.v.row(batch, head, row), grid_.k.row_stride, grid_.v.row_stride});
      }
    }
    return all;
  }
  /// Each SM's tiles of K, and of V, where copies go through registers. Copies below 16 bytes are in l1_turn.h.
  std::vector<PassingTurns> synchronous_copies() const {
    std::vector<PassingTurns> all(sms_sampled);
    const std::vector<KeysAt> keys_at = keys(false);
    for (std::size_t i = 0; i < keys_at.size(); ++i) {
      PassingTurns& turns = all[i / static_cast<std::size_t>(ctas_)];
      const auto add = [&](Operand x, std::int64_t first, std::int64_t stride) {
        const int rows = grid_.plan.tile_n, row_bytes = grid_.plan.valid_columns(x) * grid_.plan.bytes(x);
        for (std::size_t turn = 0; turn < turns.size(); ++turn)
          turns[turn].push_back({first + static_cast<std::int64_t>(turn) * rows * stride, rows, row_bytes, stride});
      };
      add(Operand::k, keys_at[i].k, keys_at[i].k_stride), add(Operand::v, keys_at[i].v, keys_at[i].v_stride);
    }
    return all;
  }

  /// What the CTAs of `n` of the SMs do that have rows; without SMs whose slots have none such.
  std::vector<SpillingSm> lives(int n) const {
    constexpr std::size_t enough = 64;  // key tiles or, of CTAs with next to none, CTAs
    std::vector<SpillingSm> all;
    const std::int64_t tasks = schedule_.tasks(), round = std::min<std::int64_t>(schedule_.slots_a_round(), tasks);
    for (int sm = 0; sm < sms_sampled; sm += sms_sampled / n) {
      SpillingSm of{sm * SampledSms::apart, {}};
      for (int cta = 0; cta < ctas_; ++cta) {
        std::vector<SpillLife> lives;
        // anywhere in its share of them: evenly they might all be a head's first query tiles
        const std::int64_t share = std::max<std::int64_t>(round / sms_sampled, 1);
        const auto in_share =
            static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(sm)) % static_cast<std::uint64_t>(share));
        std::int64_t at = (sm * round / sms_sampled + in_share + cta * round) % tasks;
        for (std::size_t ctas = 0, tiles = 0; ctas < enough && tiles < enough; ++ctas) {
          const SpillLife one = life(schedule_.task(at));
          if (!one.empty()) lives.push_back(one), tiles += one.size() - 2;
          if (tasks <= schedule_.slots()) break;
          at = (at + schedule_.slots()) % tasks;
        }
        if (!lives.empty()) of.slots.push_back(std::move(lives));
      }
      if (of.slots.size() == static_cast<std::size_t>(ctas_)) all.push_back(std::move(of));
    }
    return all;
  }

 private:
  /// Of many key tiles some at its begin and end: of those at its begin the later ones stand for what is left out.
  /// Empty without rows.
  SpillLife life(const Task& task) const {
    constexpr int first = 16, last = 4;
    using Kind = SpillStep::Kind;
    const KernelPlan& plan = grid_.plan;
    Work work = grid_.entry(task.batch).work;
    work.q_tile = task.q_tile, work.split = task.split;
    if (!plan.has_rows(work)) return {};
    const KeyWalk walk = plan.walk(plan.range(work), work);
    SpillLife life{{.kind = Kind::start}};
    std::uint32_t rescaled = 0;
    std::map<Kind, int> left;
    for (int i = walk.first; i < walk.last; ++i) {
      const Kind kind = is_masked(walk, i) ? Kind::masked : Kind::whole;
      const std::uint32_t see = plan.lazy_rescale ? warps_that_see(work, walk.tile(i)) : 0;
      const bool between = i >= walk.first + first && i < walk.last - last;
      if (between && std::ranges::count(life, kind, &SpillStep::kind) > 0)
        ++left[kind];
      else
        life.push_back({kind, see & ~rescaled});
      rescaled |= see;
    }
    for (const auto& [kind, n] : left) {
      const auto of_kind = [&](std::size_t from) {
        std::vector<SpillStep*> steps;
        for (std::size_t i = from; i < life.size(); ++i)
          if (life[i].kind == kind && (i <= first || from == 0)) steps.push_back(&life[i]);
        return steps;
      };
      std::vector<SpillStep*> stand = of_kind(first / 2 + 1);
      if (stand.empty()) stand = of_kind(0);
      for (SpillStep* const step : stand) step->stands_for += n / static_cast<double>(stand.size());
    }
    life.push_back({.kind = Kind::finish});
    return life;
  }
  /// A bit each; documents apart.
  std::uint32_t warps_that_see(const Work& work, int tile) const {
    const KernelPlan& plan = grid_.plan;
    const int key = tile * plan.tile_n;
    std::uint32_t see = 0;
    for (int warp = 0; warp < plan.num_warps; ++warp) {
      const int row = work.q_tile * plan.tile_m + warp * plan.rows_per_warp(),
                end = std::min(row + plan.rows_per_warp(), work.seqlen_q);
      const bool seen = plan.key_begin(work, row) < key + plan.tile_n && plan.key_end(work, end - 1) > key;
      if (row < end && (seen || key < plan.prefix_end(work))) see |= std::uint32_t{1} << warp;
    }
    return see;
  }
  Task task_of(int sm, int cta) const {
    return schedule_.task((sm * schedule_.tasks() / sms_sampled + std::int64_t{cta} * schedule_.slots_a_round()) %
                          schedule_.tasks());
  }

  Grid grid_;
  Schedule schedule_;
  int ctas_;
};

/// O and LSE, of packed heads as if they were one.
std::vector<PassingTile> output_of(const Grid& grid, const StoredTile& of) {
  const std::int64_t row = std::int64_t{of.q_tile} * grid.plan.tile_m, of_partial = grid.partial_row_bytes();
  const auto rows = static_cast<int>(grid.rows(of.batch, of.q_tile));
  const auto lse = [&](std::int64_t base, std::int64_t first) {
    return PassingTile{base + 4 * (first + row), 1, 4 * rows, 0, false};
  };
  if (grid.splits == 1) {
    std::vector<PassingTile> tiles{
        {grid.o.row(of.batch, of.head, row), rows, static_cast<int>(grid.o.row_bytes), grid.o.row_stride, false}};
    if (grid.plan.stores_lse) tiles.push_back(lse(grid.lse_base, grid.lse_row(of.batch, of.head)));
    return tiles;
  }
  // rows of a head that follow each other
  const std::int64_t first = grid.partial_row(of.batch, of.head, of.split);
  return {{grid.partial_base + (first + row) * of_partial, rows, static_cast<int>(of_partial), of_partial, false},
          lse(grid.partial_lse_base, first)};
}

}  // namespace

MissingWords missing_words(const SimulationReport& r, double masked, int ctas, bool together, const FramePlaces& places,
                           const SpillCycles& times) {
  const PlaceCounts& loads = r.registers.loaded;
  const SpillTraces traces = compiled_traces(r.plan, r.plan_name, r.c, r.device);
  // what shared memory leaves to L1 is for as many CTAs as an SM may hold, also where a grid has fewer
  const int lines = l1_lines(r.plan.smem_bytes(), r.ctas_per_sm, r.device);
  const bool calls = copies_by_call(r.plan);
  const bool synchronous = r.plan.copy_kind == CopyKind::synchronous;
  std::optional<OnSms> sms;
  const bool traced = !calls && !(traces.whole.accesses.empty() && traces.masked.accesses.empty());
  if (calls || synchronous || traced) sms.emplace(r, ctas);
  const bool pages = r.c.layout.page_size > 0;
  std::optional<InStepTimes> in_step;
  if (keeps_in_step(r.plan, r.device, pages)) in_step = in_step_times(pages, false);
  SpillLives lives;
  // a few say how long a key tile takes, as long as that is not known
  const int followed = times.key_tile > 0 ? sms_sampled : sms_sampled / 4;
  if (traced) lives = spill_lives(traces, sms->lives(followed), r.plan.num_warps, lines, places, times);
  const auto missing = [&](int words, const SpillTrace& trace, const SpillMisses& of_lives) {
    L1Turn turn;
    if (calls) turn = l1_turn(r.plan, r.device, trace, sms->keys(together), lines, places, ctas, in_step);
    if (trace.accesses.empty())
      turn.spilled.part = missing_part(words, r.plan.num_warps, ctas, lines);
    else if (!calls)
      turn.spilled = of_lives;
    return turn;
  };
  const L1Turn of_masked = missing(loads.masked, traces.masked, lives.masked),
               of_whole = missing(loads.whole, traces.whole, lives.whole);
  // what is stored in a key tile is loaded soon after
  const int parked_masked = std::max(0, loads.masked - r.registers.stored.masked),
            parked_whole = std::max(0, loads.whole - r.registers.stored.whole);
  const double driven = !synchronous ? 0
                                     : driven_out(std::max(parked_masked, parked_whole), ctas * r.plan.num_warps,
                                                  sms->synchronous_copies(), 1, lines, places);
  const auto words = [&](int loaded, int parked, double part) { return loaded * part + parked * (1 - part) * driven; };
  const double loaded = masked * loads.masked + (1 - masked) * loads.whole,
               missed = masked * words(loads.masked, parked_masked, of_masked.spilled.part) +
                        (1 - masked) * words(loads.whole, parked_whole, of_whole.spilled.part);
  const double waits = masked * of_masked.spilled.waits + (1 - masked) * of_whole.spilled.waits;
  return {.words = missed,
          .waits = waits,
          .waits_of_cta = loaded == 0 ? 0 : waits * loads.of_cta() / loaded,
          .part = loaded == 0 ? 0 : missed / loaded,
          .rescale = lives.rescale,
          .finish = lives.finish,
          .of_whole = of_whole.spilled.of_access,
          .of_masked = of_masked.spilled.of_access,
          .parked_loads = masked * parked_masked + (1 - masked) * parked_whole,
          .arguments = of_whole.arguments,
          .copies = of_whole.copies};
}

double shared_with_head_beside(const SimulationReport& r, Operand x) {
  const Grid grid(r.c, r.plan);
  if (r.plan.copy_bytes(x) == 16 || grid.p.nheads_k == 1) return 0;
  constexpr std::int64_t sector = LineSampler::sector_bytes, rows = 16;  // where sectors begin in rows comes round
  const auto& tensor = x == Operand::k ? grid.k : grid.v;
  const std::int64_t panel = std::int64_t{r.plan.copy_lanes(x)} * r.plan.copy_bytes(x);
  std::int64_t asked = 0, shared = 0;
  for (std::int64_t head = 0; head + 1 < grid.p.nheads_k; ++head)
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin = tensor.row(0, head, row), end = begin + tensor.row_bytes;
      for (std::int64_t at = begin; at < end; at += panel)
        asked += (std::min(at + panel, end) - 1) / sector - at / sector + 1;
      const std::int64_t next = tensor.row(0, head + 1, row);
      shared += next >= end && next / sector == (end - 1) / sector ? 1 : 0;
    }
  return static_cast<double>(shared) / static_cast<double>(asked);
}

double lines_missed_in_lives(const SimulationReport& r, const MissingWords& missing, const FramePlaces& places) {
  const SpillTraces traces = compiled_traces(r.plan, r.plan_name, r.c, r.device);
  CtaWords words{traces.begin.accesses,  traces.run.accesses,   traces.enter.accesses,
                 traces.masked.accesses, traces.whole.accesses, traces.end.accesses};
  if (words.start.empty() && words.masked.empty() && words.whole.empty()) {
    const auto each = [](SpillAccess::Kind kind, int n) {
      std::vector<SpillAccess> accesses;
      for (int word = 0; word < n; ++word) accesses.push_back({.kind = kind, .word = word});
      return accesses;
    };
    const auto parked = [&](int PlaceCounts::*of) {
      return std::clamp(r.registers.loaded.*of - r.registers.stored.*of, 0, places.words);
    };
    const int masked = parked(&PlaceCounts::masked), whole = parked(&PlaceCounts::whole);
    words.start = each(SpillAccess::Kind::store, std::max(masked, whole));
    words.masked = each(SpillAccess::Kind::load, masked), words.whole = each(SpillAccess::Kind::load, whole);
  }
  const int lines = l1_lines(r.plan.smem_bytes(), r.ctas_per_sm, r.device);
  if (used_words(words) * r.plan.num_warps * r.ctas_per_sm > lines) return 0;
  if (words.masked.empty() && words.whole.empty() && words.finish.empty()) return 0;
  const Grid grid(r.c, r.plan);
  const auto output = [&](const StoredTile& tile) { return output_of(grid, tile); };
  return (1 - missing.part) * missed_in_lives(words, r.plan.num_warps, r.walk.sms, output, lines, places);
}

SpillUses spill_uses_of(const SimulationReport& r, const KernelPlan& spilling, const std::optional<LocalFrame>& frame,
                        const MissingWords& missing) {
  const SpillTraces traces = compiled_traces(r.plan, r.plan_name, r.c, r.device);
  const auto stores = std::ranges::count(traces.whole.accesses, SpillAccess::Kind::store, &SpillAccess::kind);
  if (stores > 0 && stores == spilling.spill_words_per_key_tile)
    return traced_spill_uses(traces, {missing.of_whole, missing.of_masked, missing.rescale, missing.finish});
  const int words = spilling.spill_words_per_key_tile, of_cta = spilling.spill_words_per_cta;
  const LocalFrame places = frame_of(frame, spilling);
  return untraced_spill_uses(words, places, std::min<double>(std::min(of_cta, places.words), missing.parked_loads),
                             missing.part);
}

}  // namespace attest
