// A backward's programs as lists: what the roles ask for, step by step, one list a warp.
#pragma once
#include <cstdint>
#include <vector>

#include "attest/plan/backward.h"

namespace attest {

/// One operation of one warp.
struct BackwardStep {
  enum class Kind : std::uint8_t {
    clear,
    copy,
    commit,
    wait,
    barrier,
    scores,
    modify,
    mask,
    probabilities,
    dprobabilities,
    dscores,
    add_dbias,
    put,
    add_dv,
    put_dq,
    add_dq,
    add_dk,
    stage,
    store,
    row_products,
    sink_gradient,
    convert
  };
  Kind kind;
  BackwardTile operand = BackwardTile::q;  // copy, store
  std::int16_t slot = 0;                   // of Q, dO, LSE and D; wait: groups that may be in flight
  std::int32_t head = 0;                   // of the group of query heads
  std::int32_t tile = 0;                   // of queries; copies of K and V: of keys
  std::int32_t row0 = 0;                   // copy: first row of the tile in its tensor
  std::int32_t limit = 0;                  // rows from here on do not exist

  friend bool operator==(const BackwardStep&, const BackwardStep&) = default;
};

/// What one CTA does: a list for each warp.
struct BackwardProgram {
  BackwardWork work;
  std::vector<std::vector<BackwardStep>> warps;
};

/// Operations that write themselves down.
class BackwardRecorder {
 public:
  struct Scores {};
  struct Gradient {};
  using Kind = BackwardStep::Kind;

  explicit BackwardRecorder(std::vector<BackwardStep>& steps) : steps_(steps) {}

  void clear(Gradient&, Gradient&) { put_step({.kind = Kind::clear}); }
  void copy(BackwardTile x, int slot, int head, int tile, int row0, int limit) {
    put_step({Kind::copy, x, static_cast<std::int16_t>(slot), head, tile, row0, limit});
  }
  void commit() { put_step({.kind = Kind::commit}); }
  void wait(int pending) { put_step({.kind = Kind::wait, .slot = static_cast<std::int16_t>(pending)}); }
  void barrier() { put_step({.kind = Kind::barrier}); }
  void scores(Scores&, int slot, int head, int tile) { on_slot(Kind::scores, slot, head, tile); }
  void modify(Scores&, int head, int tile, int limit) { on_rows(Kind::modify, head, tile, limit); }
  void mask(Scores&, int head, int tile) { on_rows(Kind::mask, head, tile, 0); }
  void probabilities(Scores&, int slot, int head, int tile) { on_slot(Kind::probabilities, slot, head, tile); }
  void dprobabilities(Scores&, int slot, int head, int tile) { on_slot(Kind::dprobabilities, slot, head, tile); }
  void dscores(Scores&, const Scores&, int slot, int head, int tile) { on_slot(Kind::dscores, slot, head, tile); }
  void add_dbias(const Scores&, int head, int tile, int limit) { on_rows(Kind::add_dbias, head, tile, limit); }
  void put(const Scores&, const Scores&, int head, int tile) { on_rows(Kind::put, head, tile, 0); }
  void add_dv(Gradient&, int slot, int head, int tile) { on_slot(Kind::add_dv, slot, head, tile); }
  void put_dq(int head, int tile) { on_rows(Kind::put_dq, head, tile, 0); }
  void add_dq(int head, int tile, int limit) { on_rows(Kind::add_dq, head, tile, limit); }
  void add_dk(Gradient&, int slot, int head, int tile) { on_slot(Kind::add_dk, slot, head, tile); }
  void stage(const Gradient&, const Gradient&) { put_step({.kind = Kind::stage}); }
  void store(BackwardTile x, int limit) { put_step({.kind = Kind::store, .operand = x, .limit = limit}); }
  void row_products(int limit) { put_step({.kind = Kind::row_products, .limit = limit}); }
  void sink_gradient(int limit) { put_step({.kind = Kind::sink_gradient, .limit = limit}); }
  void convert(int limit) { put_step({.kind = Kind::convert, .limit = limit}); }

 private:
  void on_slot(Kind kind, int slot, int head, int tile) {
    put_step({.kind = kind, .slot = static_cast<std::int16_t>(slot), .head = head, .tile = tile});
  }
  void on_rows(Kind kind, int head, int tile, int limit) {
    put_step({.kind = kind, .head = head, .tile = tile, .limit = limit});
  }
  void put_step(const BackwardStep& step) { steps_.push_back(step); }
  std::vector<BackwardStep>& steps_;
};

/// `role` is one of preprocess, backward and postprocess: role(plan, work, ops).
template <class Plan, class Role>
BackwardProgram record_backward(const Plan& plan, const BackwardWork& work, Role role) {
  BackwardProgram program{work, std::vector<std::vector<BackwardStep>>(static_cast<std::size_t>(plan.num_warps))};
  for (auto& steps : program.warps) {
    BackwardRecorder ops(steps);
    role(plan, work, ops);
  }
  return program;
}

}  // namespace attest
