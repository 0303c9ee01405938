// A kernel's program as a list: what the roles ask for, tile step by tile step, one list a warp.
#pragma once
#include <cstdint>
#include <vector>

#include "attest/plan/combine.h"
#include "attest/plan/warp_specialized.h"

namespace attest {

/// One operation of one warp. `tile` is the key tile (or query tile) it is about; `slot` the place in shared memory.
struct Step {
  enum class Kind : std::uint8_t {
    clear,
    copy,
    commit,
    wait,
    acquire,
    await,
    release,
    next_tile,
    barrier,
    warp_barrier,
    load_query,
    scores,
    modify,
    mask,
    softmax,
    output,
    stage_probabilities,
    finish,
    stage,
    store,
    store_partial,
    weigh,
    add_partial,
    store_combined
  };
  Kind kind;
  Operand operand = Operand::q;
  bool first = false;  // softmax: nothing came before
  std::int16_t slot =
      0;  // copy, acquire, await, release, scores, output; wait: groups that may be in flight; add_partial: the split
  std::int32_t tile = 0;
  std::int32_t row0 = 0;   // copy: first row of the tile in its tensor
  std::int32_t limit = 0;  // copy, stores, modify: rows from here on do not exist

  friend bool operator==(const Step&, const Step&) = default;
};

/// What one CTA does: a list for each warp.
struct Program {
  Work work;
  std::vector<std::vector<Step>> warps;
};

/// Operations that write themselves down.
class Recorder {
 public:
  struct Query {};
  struct Scores {};
  struct Output {};
  struct Rows {};
  struct Weights {};

  Recorder(std::vector<Step>& steps, int warp) : steps_(steps), warp_(warp) {}
  int warp() const { return warp_; }

  void clear(Output&, Rows&) { put({.kind = Step::Kind::clear}); }
  void copy(Operand x, int slot, int tile, int row0, int limit) {
    put({.kind = Step::Kind::copy,
         .operand = x,
         .slot = static_cast<std::int16_t>(slot),
         .tile = tile,
         .row0 = row0,
         .limit = limit});
  }
  void copy_whole(bool there, Operand x, int slot, int tile, int row0, int limit) {
    if (there) copy(x, slot, tile, row0, limit);
  }
  void commit() { put({.kind = Step::Kind::commit}); }
  void wait(int pending) { put({.kind = Step::Kind::wait, .slot = static_cast<std::int16_t>(pending)}); }
  void barrier() { put({.kind = Step::Kind::barrier}); }
  void warp_barrier() { put({.kind = Step::Kind::warp_barrier}); }
  void load_query(Query&) { put({.kind = Step::Kind::load_query}); }
  void scores(Scores&, Query&, int slot, int tile) {
    put({.kind = Step::Kind::scores, .operand = Operand::k, .slot = static_cast<std::int16_t>(slot), .tile = tile});
  }
  void modify(Scores&, int tile, int row_limit) { put({.kind = Step::Kind::modify, .tile = tile, .limit = row_limit}); }
  void mask(Scores&, int tile) { put({.kind = Step::Kind::mask, .tile = tile}); }
  void softmax(Scores&, Output&, Rows&, bool first) { put({.kind = Step::Kind::softmax, .first = first}); }
  void output(Output&, Scores&, int slot, int tile) {
    put({.kind = Step::Kind::output, .operand = Operand::v, .slot = static_cast<std::int16_t>(slot), .tile = tile});
  }
  void acquire(Operand x, int slot) { put_slot(Step::Kind::acquire, x, slot); }
  void await(Operand x, int slot) { put_slot(Step::Kind::await, x, slot); }
  void release(Operand x, int slot) { put_slot(Step::Kind::release, x, slot); }
  void next_tile() { put({.kind = Step::Kind::next_tile}); }
  void stage_probabilities(const Scores&) { put({.kind = Step::Kind::stage_probabilities}); }
  void finish(Output&, Rows&) { put({.kind = Step::Kind::finish}); }
  void stage(const Output&) { put({.kind = Step::Kind::stage, .operand = Operand::o}); }
  void store(int limit) { put({.kind = Step::Kind::store, .operand = Operand::o, .limit = limit}); }
  void store_partial(const Output&, int limit) { put({.kind = Step::Kind::store_partial, .limit = limit}); }
  void weigh(Output&, Weights&) { put({.kind = Step::Kind::weigh}); }
  void add_partial(Output&, const Weights&, int split) {
    put({.kind = Step::Kind::add_partial, .slot = static_cast<std::int16_t>(split)});
  }
  void store_combined(const Output&, const Weights&, int limit) {
    put({.kind = Step::Kind::store_combined, .limit = limit});
  }

 private:
  void put_slot(Step::Kind kind, Operand x, int slot) {
    put({.kind = kind, .operand = x, .slot = static_cast<std::int16_t>(slot)});
  }
  void put(const Step& step) { steps_.push_back(step); }
  std::vector<Step>& steps_;
  int warp_;
};

template <class Plan, class Role>
Program record_role(const Plan& plan, const Work& work, Role role) {
  Program program{work, std::vector<std::vector<Step>>(static_cast<std::size_t>(plan.warps()))};
  for (int warp = 0; warp < plan.warps(); ++warp) {
    Recorder ops(program.warps[static_cast<std::size_t>(warp)], warp);
    role(ops);
  }
  return program;
}

template <class Plan>
Program record(const Plan& plan, const Work& work) {
  return record_role(plan, work, [&](Recorder& ops) {
    if (plan.producer_warps == 0)
      forward(plan, work, ops);
    else if (ops.warp() < plan.num_warps)
      consume(plan, work, ops);
    else if (ops.warp() == plan.num_warps)  // one warp of the producers issues
      produce(plan, work, ops);
  });
}

/// The program of the kernel that follows where there are splits.
template <class Plan>
Program record_combine(const Plan& plan, const Work& work) {
  return record_role(plan, work, [&](Recorder& ops) { combine(plan, work, ops); });
}

}  // namespace attest
