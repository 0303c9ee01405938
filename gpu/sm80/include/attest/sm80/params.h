// What the sm_80 kernels are launched with, beside the plan that they were compiled for.
#pragma once
#include "attest/plan/launch.h"
#include "attest/plan/sm80_tiles.h"

namespace attest::sm80 {

struct ForwardParams {
  ForwardArgs args;
  Launch launch;
  // The rest of the plan: what a case decides.
  int headdim = 0, headdim_v = 0;
  int copy_bytes_q = 16, copy_bytes_k = 16, copy_bytes_v = 16, copy_bytes_o = 16;
  bool wide_q = false, wide_k = false, wide_v = false;  // copies of 16 bytes from rows that follow each other
  bool softcap = false, alibi = false, bias = false, sink = false;
  bool modified = false;  // sm80_modifies_scores(): a scale that is not positive cannot stand in the exponent
  bool longest_first = false;
  int num_splits = 1;

  Sm80Tile tile = Sm80Tile::d64;
  int num_batches = 1, nheads = 1, nheads_k = 1, q_tiles = 0;
  float softmax_scale = 1, softcap_value = 0;
  float* partial_o = nullptr;    // [num_splits, batch, nheads, seqlen_q, partial_columns()]
  float* partial_lse = nullptr;  // [num_splits, batch, nheads, seqlen_q]

  constexpr Sm80Kind kind() const {
    const bool wide = wide_q && wide_k && wide_v && copy_bytes_o == 16;
    const bool plain = !modified && launch.prefix <= 0 && launch.num_documents == 0 && launch.packed_heads == 1;
    return wide && plain ? Sm80Kind::fast : Sm80Kind::general;
  }
  constexpr GridExtents grid() const {
    return {q_tiles, num_splits, num_batches, nheads / launch.packed_heads, nheads_k, launch.seqlen_k};
  }
};

/// The plan of a launch: a constant shape, and the fields that its case decides.
template <Sm80Kind Kind>
struct LaunchPlan : KernelPlan {
  bool modified = false;
  constexpr LaunchPlan(const KernelPlan& shape, const ForwardParams& p) : KernelPlan(shape), modified(p.modified) {
    headdim = p.headdim;
    headdim_v = p.headdim_v;
    copy_bytes_q = p.copy_bytes_q;
    copy_bytes_k = p.copy_bytes_k;
    copy_bytes_v = p.copy_bytes_v;
    copy_bytes_o = p.copy_bytes_o;
    softcap = p.softcap;
    alibi = p.alibi;
    bias = p.bias;
    sink = p.sink;
    longest_first = p.longest_first;
    num_splits = p.num_splits;
    if (Kind == Sm80Kind::general) packed_heads = p.launch.packed_heads;
  }
  constexpr bool modifies_scores() const { return Kind == Sm80Kind::general && modified; }
  constexpr bool subtracts_before_log2e() const { return modifies_scores(); }
};

}  // namespace attest::sm80
