// The backward pass as FlashAttention-2 has it (Dao 2023, algorithm 2), written once: three programs for one warp over
// operations on tiles.
//
//   preprocess    a CTA a query tile: D = rowsum(dO O) in fp32, dQ's accumulator 0, the sink's gradient
//   backward      a CTA a key tile, for each query tile that sees any of its keys:
//                   S = Q K^T   P = exp(S - LSE)   dP = dO V^T   dS = P (dP - D)
//                   dV += P^T dO   dQ += dS K (in global memory, fp32)   dK += dS^T Q
//   postprocess   a CTA a query tile: dQ from its accumulator, times the softmax scale
//
// `Ops` supplies, for one warp, with s the slot of Q, dO, LSE and D:
//   Scores, Gradient                      registers: S then P, dP then dS; dK and dV
//   clear(dk, dv)
//   copy(x, slot, head, tile, row0, limit), commit(), wait(pending), barrier()
//   scores(p, s, head, tile), modify(p, head, tile, limit), mask(p, head, tile), probabilities(p, s, head, tile)
//   dprobabilities(dp, s, head, tile), dscores(dp, p, s, head, tile), add_dbias(dp, head, tile, limit)
//   put(p, dp, head, tile)                P and dS, rounded, into shared memory
//   add_dv(dv, s, head, tile), put_dq(head, tile), add_dq(head, tile, limit), add_dk(dk, s, head, tile)
//   stage(dk, dv), store(x, limit)
//   row_products(limit), sink_gradient(limit), convert(limit)
// A warp has tile_m / num_warps rows of S, dP and dQ and tile_n / num_warps rows of dK and dV. P and dS therefore go
// through shared memory, and so does dQ, which leaves it in whole rows.
#pragma once
#include "attest/plan/query_walk.h"

namespace attest {

template <class Plan, class Ops>
ATTEST_ROLE void preprocess(const Plan& plan, const BackwardWork& work, Ops& ops) {
  if (!plan.has_rows(work)) return;
  ops.row_products(plan.row_limit(BackwardTile::dout, work, TileClass::partial));
  if (plan.sink) ops.sink_gradient(plan.row_limit(BackwardTile::d, work, TileClass::partial));
}

template <class Plan, class Ops>
ATTEST_ROLE void postprocess(const Plan& plan, const BackwardWork& work, Ops& ops) {
  if (plan.has_rows(work)) ops.convert(plan.row_limit(BackwardTile::dq, work, TileClass::partial));
}

/// Q, dO, LSE and D of the walk's next query tile, one copy group. Past the last an empty one, so that the number of
/// groups in flight does not depend on the tile.
template <class Plan, class Ops>
ATTEST_ROLE void fill_queries(const Plan& plan, const BackwardWork& work, Ops& ops, int slot, QueryWalk<Plan>& ahead) {
  if (!ahead.done()) {
    const auto copy = [&](BackwardTile x, int row0) {
      ops.copy(x, slot, ahead.head(), ahead.tile(), row0, plan.row_limit(x, work, ahead.seen_as()));
    };
    const int row0 = ahead.tile() * plan.tile_m;
    copy(BackwardTile::q, row0);
    copy(BackwardTile::dout, row0);
    copy(BackwardTile::lse, plan.statistics_row(BackwardTile::lse, ahead.tile(), ahead.first_tile()));
    copy(BackwardTile::d, plan.statistics_row(BackwardTile::d, ahead.tile(), ahead.first_tile()));
    ahead.advance();
  }
  ops.commit();
}

/// The main loop. Its barriers, by what they part (another warp's on either side):
///   top         copies of Q, dO, LSE, D from their reads; reads of P, dS, dQ from the next tile's writes;
///               stages > 1: reads of Q, dO, LSE, D from the copies into their slots
///   products    writes of P and dS from their reads
///   before dQ   dq_over_p: reads of P from writes of dQ
///   after dQ    writes of dQ from its reads; after the last tile, reads of K and V from dK and dV staged there
///   refill      stages = 1: reads of Q, dO, LSE, D from the copies into their slots
template <class Plan, class Ops>
ATTEST_ROLE void walk_queries(const Plan& plan, const BackwardWork& work, Ops& ops, QueryWalk<Plan> at,
                              typename Ops::Gradient& dk, typename Ops::Gradient& dv) {
  const auto next = [&](int slot) { return slot + 1 == plan.stages ? 0 : slot + 1; };
  QueryWalk<Plan> ahead = at;
  int write = 0, read = 0;
  ops.copy(BackwardTile::k, 0, 0, work.k_tile, work.k_tile * plan.tile_n,
           plan.row_limit(BackwardTile::k, work, TileClass::partial));
  ops.copy(BackwardTile::v, 0, 0, work.k_tile, work.k_tile * plan.tile_n,
           plan.row_limit(BackwardTile::v, work, TileClass::partial));
  ATTEST_UNROLL
  for (int i = 0; i < plan.copies_ahead(); ++i, write = next(write)) fill_queries(plan, work, ops, write, ahead);
  ATTEST_NO_UNROLL
  for (; !at.done(); at.advance(), read = next(read)) {
    const int head = at.head(), tile = at.tile();
    ops.wait(plan.queries_pending());
    if (plan.barrier_at_top()) ops.barrier();
    if (plan.stages > 1) {
      fill_queries(plan, work, ops, write, ahead);
      write = next(write);
    }
    if (plan.restarts_each_head() && at.starts_head()) ops.clear(dk, dv);
    typename Ops::Scores p, dp;
    ops.scores(p, read, head, tile);
    if (plan.modifies_scores()) ops.modify(p, head, tile, plan.bias_row_limit(work));
    if (at.seen_as() == TileClass::partial) ops.mask(p, head, tile);
    ops.probabilities(p, read, head, tile);
    ops.dprobabilities(dp, read, head, tile);
    ops.dscores(dp, p, read, head, tile);
    if (plan.bias) ops.add_dbias(dp, head, tile, plan.bias_row_limit(work));
    ops.put(p, dp, head, tile);
    if (plan.barrier_before_products()) ops.barrier();
    ops.add_dv(dv, read, head, tile);
    if (plan.dq_over_p && plan.barrier_before_dq()) ops.barrier();
    ops.put_dq(head, tile);
    if (plan.barrier_after_dq()) ops.barrier();
    ops.add_dq(head, tile, plan.row_limit(BackwardTile::dq, work, at.seen_as()));
    ops.add_dk(dk, read, head, tile);
    if (plan.stages == 1) {
      if (plan.barrier_before_refill()) ops.barrier();
      fill_queries(plan, work, ops, write, ahead);
    }
  }
}

template <class Plan, class Ops>
ATTEST_ROLE void backward(const Plan& plan, const BackwardWork& work, Ops& ops) {
  if (!plan.has_keys(work)) return;
  typename Ops::Gradient dk, dv;
  ops.clear(dk, dv);
  const QueryWalk<Plan> walk(plan, work);
  if (!walk.done())
    walk_queries(plan, work, ops, walk, dk, dv);
  else if (!plan.writes_without_queries(work))
    return;
  ops.stage(dk, dv);  // over K and V, which nobody has read since the last barrier
  ops.barrier();
  ops.store(BackwardTile::dk, plan.row_limit(BackwardTile::dk, work, TileClass::partial));
  ops.store(BackwardTile::dv, plan.row_limit(BackwardTile::dv, work, TileClass::partial));
}

}  // namespace attest
