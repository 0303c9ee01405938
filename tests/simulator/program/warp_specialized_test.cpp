// The program of producers and consumers: that its barriers let it end and protect every slot, and that its counts are
// the closed forms which FlashAttention 3's counters equal.
#include "attest/plan/warp_specialized.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/simulator/counts.h"

namespace attest {
namespace {

Problem problem(int headdim, Causal causal, std::int64_t seqlen = 2112) {
  Problem p;
  p.nheads = p.nheads_k = 1;
  p.headdim = p.headdim_v = headdim;
  p.seqlen_q = p.seqlen_k = seqlen;
  p.causal = causal;
  return p;
}

/// Plans of FA3's kind: its own at several head dimensions, and with other slots, tiles and P elsewhere; and cuDNN's.
std::vector<std::pair<Problem, KernelPlan>> plans() {
  std::vector<std::pair<Problem, KernelPlan>> result;
  for (const int headdim : {64, 96, 128, 192, 256})
    for (const Causal causal : {Causal::none, Causal::bottom_right}) {
      const Problem p = problem(headdim, causal);
      KernelPlan plan = fa3_plan(p, 232448);
      result.emplace_back(p, plan);
      plan.p_in_smem = !plan.p_in_smem;
      plan.stages = 3;
      result.emplace_back(p, plan);
      plan.tile_m = 64, plan.num_warps = 4, plan.tile_n = 96, plan.stages = 1;
      plan.persistence = plan.persistence == Persistence::dynamic ? Persistence::none : Persistence::dynamic;
      result.emplace_back(p, plan);
      result.emplace_back(p, cudnn_plan(p, 232448));
    }
  return result;
}

std::string name(const Problem& p, const KernelPlan& plan) {
  return "headdim " + std::to_string(p.headdim) + (p.causal == Causal::none ? "" : ", causal") + ", tile " +
         std::to_string(plan.tile_m) + " x " + std::to_string(plan.tile_n) + ", stages " + std::to_string(plan.stages);
}

// FA3 in wavefronts of 128 bytes: a key tile costs BM * d * 2 bytes of Q, and of K and V for each warpgroup BN * d * 2;
// 2 * BM * BN * 2 more where P goes through shared memory; a query tile stages O, BM * d * 2. A tile counter's answer
// is a word that the producer writes and each consumer warp reads.
TEST(WarpSpecialized, CountsAreTheClosedForms) {
  for (const auto& [p, plan] : plans()) {
    SCOPED_TRACE(name(p, plan));
    const std::int64_t m = plan.tile_m, n = plan.tile_n, row = std::int64_t{plan.columns(Operand::q)} * 2;
    const std::int64_t tile = m * row + m / 64 * 2 * n * row + (plan.p_in_smem ? 2 * m * n * 2 : 0);
    const bool counter_word = plan.persistence == Persistence::dynamic;
    Counter counter(plan, {{row, row, row, row}, {}});
    for (int q = 0; q < num_q_tiles(plan, p); ++q) {
      const Work work = make_work(p, q);
      const Counts c = counter.count(work);
      const std::int64_t tiles = plan.range(work).size(), words = counter_word ? plan.num_warps + 1 : 0;
      ASSERT_EQ(c.key_tiles, tiles);
      ASSERT_EQ(c.smem_wavefronts, (tiles * tile + m * row) / 128 + words) << "query tile " << q;
      ASSERT_EQ(c.smem_wavefronts_ideal, c.smem_wavefronts);
      ASSERT_EQ(c.atomic_bytes, counter_word ? 32 : 0);
      ASSERT_EQ(c.exponentials, tiles * m * n);
      ASSERT_EQ(c.matrix_steps * 16 * 16 * 16, tiles * m * n * 2 * plan.columns(Operand::q));
    }
  }
}

// A box is a box: rows past the end are filled with zeros, and moved. Stores leave them out.
TEST(WarpSpecialized, BoxesCountWholeAtRaggedEnds) {
  for (const std::int64_t seqlen : {1000, 1001, 1, 127}) {
    const Problem p = problem(128, Causal::none, seqlen);
    const KernelPlan plan = fa3_plan(p, 232448);
    Counter counter(plan, {{256, 256, 256, 256}, {}});
    const std::int64_t key_tiles = (seqlen + plan.tile_n - 1) / plan.tile_n;
    std::int64_t written = 0;
    for (int q = 0; q < num_q_tiles(plan, p); ++q) {
      const Counts c = counter.count(make_work(p, q));
      EXPECT_EQ(c.global_bytes[0], plan.tile_m * 256);
      EXPECT_EQ(c.global_bytes[1], key_tiles * plan.tile_n * 256);
      EXPECT_EQ(c.global_bytes[2], c.global_bytes[1]);
      for (std::size_t x = 0; x < 4; ++x) EXPECT_EQ(c.global_sectors[x] * 32, c.global_bytes[x]);
      written += c.global_bytes[3];
    }
    EXPECT_EQ(written, seqlen * 256);
  }
}

// The hardware's swizzle acts on absolute addresses: a tile starts where its pattern does.
TEST(WarpSpecialized, TilesStartOnAPatternOfTheSwizzle) {
  for (const auto& [p, plan] : plans()) {
    SCOPED_TRACE(name(p, plan));
    const auto aligned = [](std::uint32_t base, const PanelLayout& layout) {
      const std::uint32_t pattern = static_cast<std::uint32_t>(layout.panel_chunks()) * 128;
      return base % pattern == 0 && layout.rows % 8 == 0;
    };
    for (const Operand x : {Operand::q, Operand::o}) EXPECT_TRUE(aligned(plan.base(x, 0), plan.panel_layout(x)));
    for (const Operand x : {Operand::k, Operand::v})
      for (int slot = 0; slot < plan.stages; ++slot)
        EXPECT_TRUE(aligned(plan.base(x, slot), plan.panel_layout(x))) << to_string(x) << " slot " << slot;
    if (plan.p_in_smem) {
      EXPECT_TRUE(aligned(plan.p_base(), plan.probability_layout()));
    }
  }
}

/// The mbarriers of a slot: full, on which consumers wait, and empty, on which the producer waits. A wait for phase n
/// returns once n + 1 phases are complete.
struct SlotState {
  int copies = 0, acquires = 0;
  int tile = -1;
  std::map<int, int> awaited, released;  // by consumer warp
};

/// Runs the lists of a CTA's warps, whoever can go next chosen at random, and reports what is wrong.
class Interleaving {
 public:
  Interleaving(const KernelPlan& plan, const std::vector<Program>& programs, unsigned seed)
      : plan_(plan), random_(seed) {
    for (int warp = 0; warp < plan.warps(); ++warp) {
      lists_.emplace_back();
      for (const Program& program : programs)  // query tiles that a persistent CTA takes one after the other
        for (const Step& step : program.warps[static_cast<std::size_t>(warp)]) lists_.back().push_back(step);
    }
    at_.assign(lists_.size(), 0);
    arrived_.assign(lists_.size(), 0), taken_.assign(lists_.size(), 0);
  }

  std::string run() {
    while (true) {
      std::vector<std::size_t> ready;
      bool ended = true;
      for (std::size_t w = 0; w < lists_.size(); ++w) {
        if (at_[w] == lists_[w].size()) continue;
        ended = false;
        if (can_go(static_cast<int>(w), lists_[w][at_[w]])) ready.push_back(w);
      }
      if (ended) return left_over();
      if (ready.empty()) return "every warp waits";
      const std::size_t w = ready[random_() % ready.size()];
      if (std::string wrong = go(static_cast<int>(w), lists_[w][at_[w]]); !wrong.empty()) return wrong;
      ++at_[w];
    }
  }

 private:
  SlotState& slot(const Step& s, Operand x) { return slots_[{x, s.slot}]; }

  bool can_go(int warp, const Step& s) {
    SlotState& state = slot(s, s.operand);
    switch (s.kind) {
      case Step::Kind::acquire:
        for (int w = 0; w < plan_.num_warps; ++w)
          if (state.released[w] < state.acquires) return false;
        return true;
      case Step::Kind::await:
        return state.copies > state.awaited[warp];
      case Step::Kind::barrier: {  // of the consumers
        const auto self = static_cast<std::size_t>(warp);
        if (!waiting_[warp]) waiting_[warp] = true, ++arrived_[self];
        for (int w = 0; w < plan_.num_warps; ++w)
          if (arrived_[static_cast<std::size_t>(w)] < arrived_[self]) return false;
        return true;
      }
      case Step::Kind::next_tile:  // the producer takes a tile and tells the others
        return warp == plan_.num_warps ||
               taken_[static_cast<std::size_t>(plan_.num_warps)] > taken_[static_cast<std::size_t>(warp)];
      default:
        return true;
    }
  }

  std::string go(int warp, const Step& s) {
    SlotState& state = slot(s, s.operand);
    const auto holds = [&](SlotState& x) { return x.awaited[warp] == x.released[warp] + 1; };
    switch (s.kind) {
      case Step::Kind::acquire:
        ++state.acquires;
        break;
      case Step::Kind::copy:
        if (state.acquires != state.copies + 1) return "a copy into a slot that is not acquired";
        ++state.copies, state.tile = s.tile;
        break;
      case Step::Kind::await:
        if (holds(state)) return "a second wait for one copy";
        ++state.awaited[warp];
        break;
      case Step::Kind::release:
        if (!holds(state)) return "a release of a slot that it does not hold";
        ++state.released[warp];
        break;
      case Step::Kind::scores:
        if (!holds(slots_[{Operand::q, 0}])) return "scores without Q";
        [[fallthrough]];
      case Step::Kind::output:
        if (!holds(state)) return "a product of a slot that it does not hold";
        if (state.tile != s.tile) return "a product of another tile";
        break;
      case Step::Kind::stage:  // O goes over Q
        if (holds(slots_[{Operand::q, 0}])) return "O staged over Q before Q is released";
        break;
      case Step::Kind::barrier:
        waiting_[warp] = false;
        break;
      case Step::Kind::next_tile:
        ++taken_[static_cast<std::size_t>(warp)];
        break;
      default:
        break;
    }
    return "";
  }

  std::string left_over() {
    for (auto& [key, state] : slots_)
      for (int w = 0; w < plan_.num_warps; ++w)
        if (state.released[w] != state.copies)
          return "a copy of " + std::string(to_string(key.first)) + " never released";
    return "";
  }

  const KernelPlan& plan_;
  std::mt19937 random_;
  std::vector<std::vector<Step>> lists_;
  std::vector<std::size_t> at_;
  std::map<std::pair<Operand, int>, SlotState> slots_;
  std::vector<int> arrived_, taken_;
  std::map<int, bool> waiting_;
};

TEST(WarpSpecialized, EveryInterleavingEndsAndReadsWhatWasCopied) {
  for (const auto& [p, plan] : plans()) {
    SCOPED_TRACE(name(p, plan));
    std::vector<Program> programs;
    for (int q = 0; q < num_q_tiles(plan, p); q += 3) programs.push_back(record(plan, make_work(p, q)));
    for (unsigned seed = 0; seed < 6; ++seed) ASSERT_EQ(Interleaving(plan, programs, seed).run(), "");
  }
}

TEST(WarpSpecialized, TilesWithoutKeysOrRowsEnd) {
  Problem p = problem(64, Causal::bottom_right);
  p.seqlen_k = 0;
  const KernelPlan plan = fa3_plan(p, 232448);
  std::vector<Program> programs{record(plan, make_work(p, 0)), record(plan, make_work(p, num_q_tiles(plan, p) + 1))};
  ASSERT_EQ(Interleaving(plan, programs, 1).run(), "");
}

}  // namespace
}  // namespace attest
