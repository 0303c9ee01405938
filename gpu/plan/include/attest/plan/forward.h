// The forward pass, written once: a program for one warp over a small set of operations on tiles. CUDA compiles it with
// operations that issue PTX, and a plan that is a constant; the host records it, and a plan there is a value.
//
// `Ops` supplies, for one warp:
//   warp()                               its number
//   Query, Scores, Output, Rows          registers: Q's fragments, S then P, O, and each row's maximum and sum
//   copy(x, slot, tile, row0, limit)     this warp's share of a tile into a slot of shared memory, asynchronous
//   copy_whole(there, x, ...)            likewise, of a tile all of whose rows are below the limit; none unless `there`
//   commit(), wait(pending), barrier(), warp_barrier()
//   load_query(q), scores(s, q, slot, tile), modify(s, tile, row_limit), mask(s, tile), softmax(s, o, rows, first),
//   output(o, s, slot, tile)
//   finish(o, rows), stage(o), store(limit); store_partial(o, limit) with splits
//
// Where others will stand: on Hopper a producer role copies and a consumer role computes, with acquire and release
// between them where this role has wait and barrier; the backward has roles of its own over the same tile operations.
#pragma once
#include "attest/plan/instructions.h"

namespace attest {

/// Slots of shared memory that are filled and read in turn.
struct Ring {
  int stages = 1;
  int write = 0, read = 0;
  constexpr int next(int slot) const { return slot + 1 == stages ? 0 : slot + 1; }
};

/// Whether a copy may meet rows past the last one: of the tiles in a walk only the first can, the last key's, and it is
/// masked. What is whole needs no bounds and, where it may be past the walk's end, a predicate instead of a branch:
/// branches part what the compiler would interleave.
enum class Ragged : std::uint8_t { no, maybe };
constexpr Ragged ragged_ahead(KeyOrder order) { return order == KeyOrder::descending ? Ragged::no : Ragged::maybe; }

template <class Plan, class Ops>
ATTEST_ROLE void fill(const Plan& plan, Ops& ops, Ring& ring, const Work& work, Operand x, const KeyWalk& walk,
                      int position, Ragged ragged) {
  // past the last tile: an empty group, so that the number of groups in flight does not depend on the tile
  const bool there = position < walk.last;
  const int tile = plan.copied(walk, work).tile(position), row0 = tile * plan.tile_n;
  if (ragged == Ragged::no)
    ops.copy_whole(there, x, ring.write, tile, row0, plan.row_limit(x, work));
  else if (there)
    ops.copy(x, ring.write, tile, row0, plan.row_limit(x, work));
  ops.commit();
  ring.write = ring.next(ring.write);
}

/// Everything between a tile's dot products and its softmax.
template <class Plan, class Ops>
ATTEST_ROLE void shape_scores(const Plan& plan, const Work& work, Ops& ops, typename Ops::Scores& s, int tile,
                              bool masked) {
  if (masked && plan.masks_first()) ops.mask(s, tile);
  if (plan.modifies_scores()) ops.modify(s, tile, plan.bias_row_limit(work));
  if (masked && !plan.masks_first()) ops.mask(s, tile);
}

/// Calls step(position, first, masked) for the walk's positions: `masked` is a constant in each of two calls, `first`
/// is not.
template <class Step>
ATTEST_ROLE void walk_keys(const KeyWalk& walk, Step&& step) {
  int i = walk.first;
  ATTEST_NO_UNROLL
  for (int run = 0; run < 6 && i < walk.last; ++run) {
    const int end = walk.run_end(run);
    if (run % 3 == 1) {
      ATTEST_NO_UNROLL
      for (; i < end; ++i) step(i, i == walk.first, false);
    } else {
      ATTEST_NO_UNROLL
      for (; i < end; ++i) step(i, i == walk.first, true);
    }
  }
}

/// One slot each for K and V: V's copy runs under S = Q K^T, the next K's under the softmax and P V.
template <class Plan, class Ops>
ATTEST_ROLE void forward_single_stage(const Plan& plan, const Work& work, Ops& ops, const KeyWalk& walk,
                                      typename Ops::Query& q, typename Ops::Output& o, typename Ops::Rows& rows) {
  const Ragged next_tiles = ragged_ahead(plan.key_order);
  Ring k{1}, v{1};
  fill(plan, ops, k, work, Operand::k, walk, walk.first, Ragged::maybe);
  walk_keys(walk, [&](int position, bool first, bool masked) ATTEST_INLINE_LAMBDA {
    const int tile = walk.tile(position);
    ops.wait(plan.k_pending());
    if (plan.barrier_after_wait() && plan.arrives(work, ops.warp(), tile)) ops.barrier();
    fill(plan, ops, v, work, Operand::v, walk, position, masked ? Ragged::maybe : Ragged::no);
    if (first && plan.q_in_registers) ops.load_query(q);
    typename Ops::Scores s;
    ops.scores(s, q, k.read, tile);
    ops.wait(plan.v_pending());
    if (plan.barrier_before_refill()) ops.barrier();
    fill(plan, ops, k, work, Operand::k, walk, position + 1, next_tiles);
    shape_scores(plan, work, ops, s, tile, masked);
    ops.softmax(s, o, rows, first);
    ops.output(o, s, plan.value_slot(v.read), tile);
  });
}

/// Two slots or more: the copies of the tile `stages - 1` ahead start as soon as the barrier has freed its slots.
template <class Plan, class Ops>
ATTEST_ROLE void forward_multistage(const Plan& plan, const Work& work, Ops& ops, const KeyWalk& walk,
                                    typename Ops::Query& q, typename Ops::Output& o, typename Ops::Rows& rows) {
  const Ragged next_tiles = ragged_ahead(plan.key_order);
  Ring k{plan.stages}, v{plan.stages};
  ATTEST_UNROLL
  for (int ahead = 0; ahead < plan.stages - 1; ++ahead) {
    fill(plan, ops, k, work, Operand::k, walk, walk.first + ahead, Ragged::maybe);
    fill(plan, ops, v, work, Operand::v, walk, walk.first + ahead, Ragged::maybe);
  }
  walk_keys(walk, [&](int position, bool first, bool masked) ATTEST_INLINE_LAMBDA {
    const int tile = walk.tile(position);
    ops.wait(plan.k_pending());
    if (plan.barrier_after_wait() && plan.arrives(work, ops.warp(), tile)) ops.barrier();
    fill(plan, ops, k, work, Operand::k, walk, position + plan.stages - 1, next_tiles);
    fill(plan, ops, v, work, Operand::v, walk, position + plan.stages - 1, next_tiles);
    if (first && plan.q_in_registers) ops.load_query(q);
    typename Ops::Scores s;
    ops.scores(s, q, k.read, tile);
    k.read = k.next(k.read);
    shape_scores(plan, work, ops, s, tile, masked);
    ops.softmax(s, o, rows, first);
    if (!plan.merged_wait) {
      ops.wait(plan.v_pending());
      ops.barrier();
    }
    ops.output(o, s, plan.value_slot(v.read), tile);
    v.read = v.next(v.read);
  });
}

template <class Plan, class Ops>
ATTEST_ROLE void forward(const Plan& plan, const Work& work, Ops& ops) {
  if (!plan.has_rows(work)) return;
  const KeyWalk walk = plan.walk(plan.range(work), work);
  typename Ops::Query q;
  typename Ops::Output o;
  typename Ops::Rows rows;
  ops.clear(o, rows);
  if (walk.first < walk.last) {
    ops.copy(Operand::q, 0, work.q_tile, work.q_tile * plan.tile_m, plan.row_limit(Operand::q, work));
    if (plan.stages == 1)
      forward_single_stage(plan, work, ops, walk, q, o, rows);
    else
      forward_multistage(plan, work, ops, walk, q, o, rows);
  } else if (!plan.writes_without_keys(work)) {
    return;
  }
  ops.finish(o, rows);
  if (plan.num_splits > 1) return ops.store_partial(o, plan.row_limit(Operand::o, work));
  if (plan.staging_needs_barrier() && plan.arrives_to_stage(work, ops.warp()))
    ops.barrier();
  else
    ops.warp_barrier();
  ops.stage(o);
  ops.warp_barrier();
  ops.store(plan.row_limit(Operand::o, work));
}

}  // namespace attest
