// Problems for the tests of this folder.
#pragma once
#include "attest/problem/problem.h"

namespace attest {

inline Problem small_problem(std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t headdim, std::int64_t headdim_v,
                             Dtype dtype = Dtype::bf16) {
  Problem p;
  p.seqlen_q = seqlen_q;
  p.seqlen_k = seqlen_k;
  p.headdim = headdim;
  p.headdim_v = headdim_v;
  p.dtype = dtype;
  return p;
}

}  // namespace attest
