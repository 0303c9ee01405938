// The forward pass, written once: a program for one warp over a small set of operations on tiles. CUDA compiles it with
// operations that issue PTX, and a plan that is a constant; the host records it, and a plan there is a value.
//
// `Ops` supplies, for one warp:
//   Query, Scores, Output, Rows          registers: Q's fragments, S then P, O, and each row's maximum and sum
//   copy(x, slot, tile, row0, limit)     this warp's share of a tile into a slot of shared memory, asynchronous
//   commit(), wait(pending), barrier(), warp_barrier()
//   load_query(q), scores(s, q, slot, tile), mask(s, tile), softmax(s, o, rows, first), output(o, s, slot, tile)
//   finish(o, rows), stage(o), store(limit)
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

template <class Plan, class Ops>
ATTEST_ROLE void fill(const Plan& plan, Ops& ops, Ring& ring, const Work& work, Operand x, int tile, int first_tile) {
  // past the first tile: an empty group, so that the number of groups in flight does not depend on the tile
  if (tile >= first_tile) ops.copy(x, ring.write, tile, tile * plan.tile_n, plan.row_limit(x, work));
  ops.commit();
  ring.write = ring.next(ring.write);
}

/// One slot each for K and V: V's copy runs under S = Q K^T, the next K's under the softmax and P V.
template <class Plan, class Ops>
ATTEST_ROLE void forward_single_stage(const Plan& plan, const Work& work, Ops& ops, const TileRange& range,
                                      typename Ops::Query& q, typename Ops::Output& o, typename Ops::Rows& rows) {
  Ring k{1}, v{1};
  int tile = range.end - 1;
  fill(plan, ops, k, work, Operand::k, tile, range.begin);
  const auto step = [&](bool first, bool masked) {
    ops.wait(plan.k_pending());
    if (plan.barrier_after_wait()) ops.barrier();
    fill(plan, ops, v, work, Operand::v, tile, range.begin);
    if (first && plan.q_in_registers) ops.load_query(q);
    typename Ops::Scores s;
    ops.scores(s, q, k.read, tile);
    ops.wait(plan.v_pending());
    if (plan.barrier_before_refill()) ops.barrier();
    fill(plan, ops, k, work, Operand::k, tile - 1, range.begin);
    if (masked) ops.mask(s, tile);
    ops.softmax(s, o, rows, first);
    ops.output(o, s, v.read, tile);
  };
  step(true, true);  // masking a full tile changes nothing
  ATTEST_NO_UNROLL
  for (--tile; tile >= range.full_end; --tile) step(false, true);
  ATTEST_NO_UNROLL
  for (; tile >= range.full_begin; --tile) step(false, false);
  ATTEST_NO_UNROLL
  for (; tile >= range.begin; --tile) step(false, true);
}

/// Two slots or more: the copies of the tile `stages - 1` ahead start as soon as the barrier has freed its slots.
template <class Plan, class Ops>
ATTEST_ROLE void forward_multistage(const Plan& plan, const Work& work, Ops& ops, const TileRange& range,
                                    typename Ops::Query& q, typename Ops::Output& o, typename Ops::Rows& rows) {
  Ring k{plan.stages}, v{plan.stages};
  int tile = range.end - 1;
  ATTEST_UNROLL
  for (int ahead = 0; ahead < plan.stages - 1; ++ahead) {
    fill(plan, ops, k, work, Operand::k, tile - ahead, range.begin);
    fill(plan, ops, v, work, Operand::v, tile - ahead, range.begin);
  }
  const auto step = [&](bool first, bool masked) {
    ops.wait(plan.k_pending());
    if (plan.barrier_after_wait()) ops.barrier();
    fill(plan, ops, k, work, Operand::k, tile - (plan.stages - 1), range.begin);
    fill(plan, ops, v, work, Operand::v, tile - (plan.stages - 1), range.begin);
    if (first && plan.q_in_registers) ops.load_query(q);
    typename Ops::Scores s;
    ops.scores(s, q, k.read, tile);
    k.read = k.next(k.read);
    if (masked) ops.mask(s, tile);
    ops.softmax(s, o, rows, first);
    if (!plan.merged_wait) {
      ops.wait(plan.v_pending());
      ops.barrier();
    }
    ops.output(o, s, v.read, tile);
    v.read = v.next(v.read);
  };
  step(true, true);
  ATTEST_NO_UNROLL
  for (--tile; tile >= range.full_end; --tile) step(false, true);
  ATTEST_NO_UNROLL
  for (; tile >= range.full_begin; --tile) step(false, false);
  ATTEST_NO_UNROLL
  for (; tile >= range.begin; --tile) step(false, true);
}

template <class Plan, class Ops>
ATTEST_ROLE void forward(const Plan& plan, const Work& work, Ops& ops) {
  const TileRange range = plan.range(work);
  typename Ops::Query q;
  typename Ops::Output o;
  typename Ops::Rows rows;
  ops.clear(o, rows);
  if (range.begin < range.end) {
    ops.copy(Operand::q, 0, work.q_tile, work.q_tile * plan.tile_m, plan.row_limit(Operand::q, work));
    if (plan.stages == 1)
      forward_single_stage(plan, work, ops, range, q, o, rows);
    else
      forward_multistage(plan, work, ops, range, q, o, rows);
  } else if (!plan.writes_without_keys(work)) {
    return;
  }
  ops.finish(o, rows);
  if (plan.staging_needs_barrier())
    ops.barrier();
  else
    ops.warp_barrier();
  ops.stage(o);
  ops.warp_barrier();
  ops.store(plan.row_limit(Operand::o, work));
}

}  // namespace attest
