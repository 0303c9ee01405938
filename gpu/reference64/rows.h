// What the rows' kernel is launched with. All pointers are the device's.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace attest::reference64 {

/// Two intervals of keys, [0, 1) and [2, 3), that hold all keys of 64 rows.
struct Intervals {
  int edges[4];
};
inline constexpr int rows_per_strip = 64;

/// The constants of a Numerics that the forward's budget hangs on.
struct Rounding {
  double u_S, u_P, a_P, min_normal_P, u_acc, eps_exp, eps_tanh, u_out, floor_out, lse_max_roundings, max_P;
  int chain, smallest_tile, num_splits;
  bool normalises_first;
};

struct RowCall {
  int batch, nheads, nheads_k, seqlen_q, seqlen_k, headdim, headdim_v;
  const float *q, *k, *v;               // dense, [batch, seqlen, heads, dim]
  const int *queries, *keys;            // [batch], of each entry
  const int* document;                  // of each position; null: one document
  const Intervals* intervals;           // [batch, strips]
  const double *score_scale, *v_scale;  // [batch, nheads_k]
  const double *sink, *slopes;          // [nheads], [batch, nheads]; null where the problem has none
  const float* bias;                    // null or [batch or 1, nheads or 1, seqlen_q, seqlen_k]
  bool bias_per_batch, bias_per_head;
  bool causal, top_left, is_fp8;
  std::int64_t left, right, prefix;  // -1: unlimited
  double softcap;                    // 0: none
  Rounding rounding;
  // As in Truth, zeroed before; o_variance and roundings null where they are empty there, lse_variance where nothing
  // statistical is asked for.
  double *o, *lse, *o_bound, *lse_bound, *o_variance, *lse_variance, *roundings;
  double* scratch;  // scratch_bytes()
  int num_ctas;
};

std::size_t scratch_bytes(int seqlen_k, int num_ctas);

/// Throws CudaError.
void launch_rows(const RowCall& call, cudaStream_t stream);

}  // namespace attest::reference64
