// A step of a program as the warp instructions that the kernel issues for it, with the address of every lane.
#pragma once
#include <array>
#include <cstdint>

#include "attest/simulator/program.h"

namespace attest {

using Lanes = std::array<std::uint32_t, 32>;

/// One warp instruction on shared memory.
struct SharedAccess {
  enum class Kind : std::uint8_t {
    fill_async,
    fill_sync,
    load_matrix,
    load_word,
    stage,
    load_staged,
    fill_bulk,  // by TMA
    multiply    // wgmma reads an operand
  };
  static constexpr std::size_t num_kinds = 8;
  Kind kind;
  Operand operand;
  int bytes;             // a lane
  std::uint32_t active;  // a bit a lane
  Lanes address;         // byte address from the CTA's base
};

/// One warp instruction on global memory, in rows and bytes of one head of `operand`.
struct GlobalAccess {
  Operand operand;
  bool write;
  int bytes;             // a lane
  std::uint32_t active;  // lanes that really move bytes: zero-filled ones do not
  std::array<std::int32_t, 32> row, byte;
};

/// Instructions that report their addresses to a sink:
///   shared(const SharedAccess&), global(const GlobalAccess&), matrix_step(), exponentials(rows, keys).
template <class Sink>
class HostInstructions {
 public:
  using Lanes = attest::Lanes;
  struct Fragment {};
  struct Query {
    Fragment f;
    Fragment& at(int, int) { return f; }
  };
  struct Probabilities {
    Fragment f;
    Fragment& at(int) { return f; }
  };
  struct Scores {};
  struct Output {};

  HostInstructions(Sink& sink, int warp, CopyKind copies) : sink_(sink), warp_(warp), copies_(copies) {}
  int warp() const { return warp_; }

  template <class F>
  Lanes lanes(F f) const {
    Lanes result;
    for (int lane = 0; lane < 32; ++lane) result[static_cast<std::size_t>(lane)] = static_cast<std::uint32_t>(f(lane));
    return result;
  }

  void copy(const Granule<Lanes>& g) {
    const bool async = g.bytes >= 4 && copies_ != CopyKind::synchronous;
    const auto kind = async ? SharedAccess::Kind::fill_async : SharedAccess::Kind::fill_sync;
    SharedAccess shared{kind, g.operand, g.bytes, 0, {}};
    GlobalAccess global{g.operand, false, g.bytes, 0, {}, {}};
    move(g, shared, global);
    if (shared.active != 0) sink_.shared(shared);
    if (global.active != 0) sink_.global(global);
  }

  void store(const Granule<Lanes>& g) {
    SharedAccess shared{SharedAccess::Kind::load_staged, g.operand, g.bytes, 0, {}};
    GlobalAccess global{g.operand, true, g.bytes, 0, {}, {}};
    move(g, shared, global);
    // compiled code loads before it asks which lanes have a row to store (gpu/sm80's all but a warp's last time)
    if (shared.active != 0) sink_.shared(shared);
    if (global.active != 0) sink_.global(global);
  }

  template <bool Transposed>
  void load_matrix(Operand x, Fragment&, const Lanes& lane, std::uint32_t step_xor, std::uint32_t step_add) {
    sink_.shared(access(SharedAccess::Kind::load_matrix, x, 16, lane, step_xor, step_add));
  }
  void load_words(Operand x, Fragment&, const Lanes (&lane)[4], std::uint32_t step_xor, std::uint32_t step_add) {
    for (const Lanes& part : lane) sink_.shared(access(SharedAccess::Kind::load_word, x, 4, part, step_xor, step_add));
  }
  void part_columns(Fragment&) {}
  void mma_scores(Scores&, int, int, const Fragment&, const Fragment&, bool) { sink_.matrix_step(); }
  void mma_output(Output&, int, int, const Fragment&, const Fragment&) { sink_.matrix_step(); }
  void probability(Fragment&, const Scores&, int, int) {}
  void stage(const Output&, int, int, int, const Lanes& lane, std::uint32_t step_xor, std::uint32_t step_add) {
    sink_.shared(access(SharedAccess::Kind::stage, Operand::o, stage_bytes, lane, step_xor, step_add));
  }

  int stage_bytes = 4;  // a pair of outputs, or two

 private:
  static SharedAccess access(SharedAccess::Kind kind, Operand x, int bytes, const Lanes& lane, std::uint32_t step_xor,
                             std::uint32_t step_add) {
    SharedAccess a{kind, x, bytes, ~0u, lane};
    for (auto& address : a.address) address = (address ^ step_xor) + step_add;
    return a;
  }

  static void move(const Granule<Lanes>& g, SharedAccess& shared, GlobalAccess& global) {
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const int tile_row = g.pass_row0 + static_cast<int>(g.row[lane]), byte = g.byte0 + static_cast<int>(g.byte[lane]);
      if (tile_row >= g.tile_rows) continue;
      shared.active |= 1u << lane;
      shared.address[lane] = (g.smem[lane] ^ g.smem_xor) + g.smem_add;
      global.row[lane] = g.row0 + tile_row;
      global.byte[lane] = byte;
      if (g.row0 + tile_row < g.limit && byte < g.row_bytes) global.active |= 1u << lane;
    }
  }

  Sink& sink_;
  int warp_;
  CopyKind copies_;
};

/// The instructions of `step` on warp `warp`, to `sink`.
template <class Plan, class Sink>
void expand(const Plan& plan, const Work& work, const Step& step, int warp, Sink& sink) {
  using Ins = HostInstructions<Sink>;
  Ins ins(sink, warp, plan.copy_kind);
  typename Ins::Query q;
  typename Ins::Scores s;
  typename Ins::Output o;
  switch (step.kind) {
    case Step::Kind::copy:
      emit_copy(plan, ins, copy_lanes(plan, ins, step.operand), step.operand, step.slot, step.row0, step.limit);
      break;
    case Step::Kind::load_query: {
      const auto at = fragment_lanes(plan, ins);
      for (int k = 0; k < plan.columns(Operand::q) / plan.k_step(); ++k) emit_load_query(plan, ins, at, q, k);
      break;
    }
    case Step::Kind::scores:
      emit_scores(plan, ins, fragment_lanes(plan, ins), s, q, step.slot);
      break;
    case Step::Kind::softmax:
      sink.exponentials(plan.rows_per_warp(), plan.tile_n);
      break;
    case Step::Kind::output:
      emit_output(plan, ins, fragment_lanes(plan, ins), o, s, step.slot);
      break;
    case Step::Kind::stage:
      ins.stage_bytes = plan.element_bytes == 1 ? 8 : 2 * plan.element_bytes;
      emit_stage(plan, ins, fragment_lanes(plan, ins), o);
      break;
    case Step::Kind::store:
      emit_store(plan, ins, work.q_tile * plan.tile_m, step.limit);
      break;
    default:
      break;
  }
}

}  // namespace attest
