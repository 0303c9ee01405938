// The forward of a Hopper kernel, written once: one warp copies whole tiles by TMA, warpgroups of four warps multiply
// out of shared memory with wgmma. A slot goes back and forth between them on a pair of mbarriers:
//
//     produce   acquire(slot)  copy(slot)                     acquire waits until every consumer has released the slot
//     consume                             await(slot)  multiply  release(slot)        await, until the copy has landed
//
// With Overlap::within_warpgroup scores of the next key tile are issued before O += P V of this one, so that one
// warpgroup's softmax runs under another's products and under its own. Between warpgroups a tile's scores, softmax and
// product follow each other; that these take turns is a matter of time alone and not written here.
//
// `Ops` beside those of forward.h:
//   acquire(x, slot), await(x, slot), release(x, slot)
//   next_tile()              a dynamic scheduler's answer: the producer takes it from a counter in global memory and
//                            hands it on through shared memory
//   stage_probabilities(s)   P to shared memory, where the plan multiplies it from there
#pragma once
#include "attest/plan/forward.h"

namespace attest {

/// The warp that copies: K of the first tile, Q, then K of each tile before V of the tile ahead of it, or after.
template <class Plan, class Ops>
ATTEST_ROLE void produce(const Plan& plan, const Work& work, Ops& ops) {
  if (plan.persistence == Persistence::dynamic) ops.next_tile();
  if (!plan.has_rows(work)) return;
  const KeyWalk walk = plan.walk(plan.range(work), work);
  if (walk.first >= walk.last) return;
  Ring k{plan.stages}, v{plan.stages};
  const auto load = [&](Operand x, Ring& ring, int position) {
    const int tile = walk.tile(position);
    ops.acquire(x, ring.write);
    ops.copy(x, ring.write, tile, tile * plan.tile_n, plan.row_limit(x, work));
    ring.write = ring.next(ring.write);
  };
  load(Operand::k, k, walk.first);
  ops.acquire(Operand::q, 0);
  ops.copy(Operand::q, 0, work.q_tile, work.q_tile * plan.tile_m, plan.row_limit(Operand::q, work));
  const bool ahead = plan.overlap == Overlap::within_warpgroup;  // K of the next tile before V of this one
  ATTEST_NO_UNROLL
  for (int i = walk.first + 1; i < walk.last; ++i) {
    if (!ahead) load(Operand::v, v, i - 1);
    load(Operand::k, k, i);
    if (ahead) load(Operand::v, v, i - 1);
  }
  load(Operand::v, v, walk.last - 1);
}

/// A warp of a warpgroup that multiplies.
template <class Plan, class Ops>
ATTEST_ROLE void consume(const Plan& plan, const Work& work, Ops& ops) {
  if (plan.persistence == Persistence::dynamic) ops.next_tile();
  if (!plan.has_rows(work)) return;
  const KeyWalk walk = plan.walk(plan.range(work), work);
  typename Ops::Query q;
  typename Ops::Output o;
  typename Ops::Rows rows;
  ops.clear(o, rows);
  if (walk.first < walk.last) {
    Ring k{plan.stages}, v{plan.stages};
    typename Ops::Scores s;
    const auto score = [&](int tile) {
      ops.await(Operand::k, k.read);
      ops.scores(s, q, k.read, tile);
    };
    const auto weigh = [&](int tile) {
      ops.await(Operand::v, v.read);
      ops.output(o, s, plan.value_slot(v.read), tile);
      ops.release(Operand::v, v.read);
      v.read = v.next(v.read);
    };
    const auto shape = [&](int tile, bool first, bool masked) {
      ops.release(Operand::k, k.read);
      k.read = k.next(k.read);
      shape_scores(plan, work, ops, s, tile, masked);
      ops.softmax(s, o, rows, first);
      if (plan.p_in_smem) ops.stage_probabilities(s);
    };
    ops.await(Operand::q, 0);
    walk_keys(walk, [&](int position, bool first, bool masked) {
      const int tile = walk.tile(position);
      const bool ahead = plan.overlap == Overlap::within_warpgroup;
      score(tile);
      if (ahead && !first) weigh(walk.tile(position - 1));
      shape(tile, first, masked);
      if (!ahead) weigh(tile);
    });
    if (plan.overlap == Overlap::within_warpgroup) weigh(walk.tile(walk.last - 1));
    ops.release(Operand::q, 0);
  }
  ops.finish(o, rows);
  ops.stage(o);
  ops.barrier();
  ops.store(plan.row_limit(Operand::o, work));
}

}  // namespace attest
