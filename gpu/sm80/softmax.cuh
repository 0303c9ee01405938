// The steps on a warp's scores: what modifies and masks them, the running softmax, and its end. Row g + 8h of m block m
// is element pair h of accumulators [m]; a row lies in the four lanes of a quad.
#pragma once
#include "attest/ptx/quad.cuh"
#include "fragments.cuh"

namespace attest::sm80 {

inline constexpr float infinity = std::numeric_limits<float>::infinity();

/// f(score, m, h, key in the tile) for a lane's scores.
template <class Cfg, class F>
ATTEST_DEVICE void each_score(typename Registers<Cfg>::Scores& s, F f) {
#pragma unroll
  for (int m = 0; m < Registers<Cfg>::m_blocks; ++m)
#pragma unroll
    for (int n = 0; n < Registers<Cfg>::n_blocks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int key = 8 * n + accumulator(0, e).col;  // of lane 0; see first_key()
        f(s.x[m][n][e], m, e >> 1, key);
      }
}
ATTEST_DEVICE int first_key() { return accumulator(lane_id(), 0).col; }
ATTEST_DEVICE int row_of(int m, int h) { return 16 * m + accumulator(lane_id(), 2 * h).row; }

/// KernelPlan::score() a term at a time: a loop each, so that a case pays for the terms that it has.
template <class Cfg, class Plan>
ATTEST_DEVICE void modify_scores(const Plan& plan, const Work& work, const ScoreNumbers& numbers, int row0, int key0,
                                 int row_limit, typename Registers<Cfg>::Scores& s) {
  const auto term = [&plan](bool softcap, bool alibi, bool bias) {
    Plan one = plan;
    one.softcap = softcap, one.alibi = alibi, one.bias = bias;
    return one;
  };
  const auto tanh = [](float x) { return ptx::tanh_approx(x); };
  if (plan.softcap)
    each_score<Cfg>(s, [&](float& x, int, int, int) { x = term(true, false, false).score(numbers, x, 0, 0.0f, tanh); });
  else
    each_score<Cfg>(s,
                    [&](float& x, int, int, int) { x = term(false, false, false).score(numbers, x, 0, 0.0f, tanh); });
  ScoreNumbers unscaled = numbers;
  unscaled.scale = 1;
  if (plan.alibi)
    each_score<Cfg>(s, [&](float& x, int m, int h, int key) {
      const int distance = plan.distance(work, row0 + row_of(m, h), key0 + first_key() + key);
      x = term(false, true, false).score(unscaled, x, distance, 0.0f, tanh);
    });
  if (plan.bias)
    each_score<Cfg>(s, [&](float& x, int m, int h, int key) {
      const int row = row0 + row_of(m, h), k = key0 + first_key() + key;
      float value = 0;  // keys past the last have none
      if (row < row_limit && k < work.seqlen_k)
        value = numbers.bias[plan.bias_offset(row, numbers.bias_row_stride) + k];
      x = term(false, false, true).score(unscaled, x, 0, value, tanh);
    });
}

template <class Cfg, class Plan>
ATTEST_DEVICE void mask_scores(const Plan& plan, const Work& work, int row0, int key0,
                               typename Registers<Cfg>::Scores& s) {
  constexpr int m_blocks = Registers<Cfg>::m_blocks, n_blocks = Registers<Cfg>::n_blocks;
  const auto mask = [&](int m, int h, auto hidden) {  // hidden(key in the tile, less first_key())
#pragma unroll
    for (int n = 0; n < n_blocks; ++n)
#pragma unroll
      for (int c = 0; c < 2; ++c)
        if (hidden(8 * n + c)) s.x[m][n][2 * h + c] = plan.masked_score();
  };
  if (Cfg::kind == Sm80Kind::fast || (work.prefix <= 0 && work.num_documents == 0)) {
#pragma unroll
    for (int m = 0; m < m_blocks; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int end = plan.key_end(work, row0 + row_of(m, h)) - key0 - first_key();
        mask(m, h, [end](int key) { return key >= end; });
      }
    if (work.left < 0) return;
#pragma unroll
    for (int m = 0; m < m_blocks; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int begin = plan.key_begin(work, row0 + row_of(m, h)) - key0 - first_key();
        mask(m, h, [begin](int key) { return key < begin; });
      }
  } else {
#pragma unroll
    for (int m = 0; m < m_blocks; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // RowMask with its ends found once: two intervals within the row's document
        const int row = row0 + row_of(m, h), first = key0 + first_key();
        const int begin = plan.document_begin(work, row), end = plan.document_end(work, row);
        const int low = std::max(begin, plan.key_begin(work, row)) - first;
        const int high = std::min(end, plan.key_end(work, row)) - first;
        const int prefix_low = begin - first, prefix_high = std::min(end, plan.prefix_end(work)) - first;
        mask(m, h, [=](int key) { return (key < low || key >= high) && (key < prefix_low || key >= prefix_high); });
      }
  }
}

template <class Cfg>
ATTEST_DEVICE float row_max(const typename Registers<Cfg>::Scores& s, int m, int h, float start) {
#pragma unroll
  for (int n = 0; n < Registers<Cfg>::n_blocks; ++n)
    start = fmaxf(start, fmaxf(s.x[m][n][2 * h], s.x[m][n][2 * h + 1]));
  return ptx::quad_max(start);
}

template <class Cfg>
ATTEST_DEVICE void rescale_row(typename Registers<Cfg>::Output& o, typename Registers<Cfg>::Rows& rows, int m, int h,
                               float factor) {
  rows.sum[m][h] *= factor;
#pragma unroll
  for (int d = 0; d < Registers<Cfg>::d_blocks; ++d) {
    o.x[m][d][2 * h] *= factor;
    o.x[m][d][2 * h + 1] *= factor;
  }
}

/// Scores become P, relative to the row's maximum as it stands. A branch for all rows: the exponentials of one run
/// beside the matrix steps of another only where no branch parts them.
template <class Cfg, class Plan>
ATTEST_DEVICE void exponentiate(const Plan& plan, float scale_log2, typename Registers<Cfg>::Scores& s,
                                typename Registers<Cfg>::Rows& rows) {
  constexpr int m_blocks = Registers<Cfg>::m_blocks;
  float shift[m_blocks][2];
#pragma unroll
  for (int m = 0; m < m_blocks; ++m)
#pragma unroll
    for (int h = 0; h < 2; ++h) shift[m][h] = rows.max[m][h] == -infinity ? 0.0f : rows.max[m][h] * scale_log2;
  if (plan.subtracts_before_log2e()) {
#pragma unroll
    for (int m = 0; m < m_blocks; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float max = rows.max[m][h] == -infinity ? 0.0f : rows.max[m][h];
#pragma unroll
        for (int n = 0; n < Registers<Cfg>::n_blocks; ++n) {
          s.x[m][n][2 * h] -= max;
          s.x[m][n][2 * h + 1] -= max;
        }
        shift[m][h] = 0;
      }
  }
#pragma unroll
  for (int m = 0; m < m_blocks; ++m)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = rows.sum[m][h];
#pragma unroll
      for (int n = 0; n < Registers<Cfg>::n_blocks; ++n) {
        float(&x)[4] = s.x[m][n];
        x[2 * h] = ptx::exp2_approx(x[2 * h] * scale_log2 - shift[m][h]);
        x[2 * h + 1] = ptx::exp2_approx(x[2 * h + 1] * scale_log2 - shift[m][h]);
        sum += x[2 * h] + x[2 * h + 1];
      }
      rows.sum[m][h] = sum;
    }
}

/// O is rescaled where a row's maximum outgrows what O is relative to. Rows decide for themselves, so that a row's bits
/// do not depend on its neighbours; the warp's vote only skips the work.
template <class Cfg, class Plan>
ATTEST_DEVICE void update_softmax(const Plan& plan, float scale_log2, typename Registers<Cfg>::Scores& s,
                                  typename Registers<Cfg>::Output& o, typename Registers<Cfg>::Rows& rows) {
  constexpr int m_blocks = Registers<Cfg>::m_blocks;
  float top[m_blocks][2];
  const auto outgrown = [&](float now, float before) {  // from -inf to -inf: NaN, no growth
    return (now - before) * scale_log2 > (plan.lazy_rescale ? plan.lazy_growth_log2() : 0.0f);
  };
  bool any = false;
#pragma unroll
  for (int m = 0; m < m_blocks; ++m)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      top[m][h] = row_max<Cfg>(s, m, h, rows.max[m][h]);
      any |= outgrown(top[m][h], rows.max[m][h]);
    }
  if (__any_sync(ptx::all_lanes, any)) {
#pragma unroll
    for (int m = 0; m < m_blocks; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const bool grows = outgrown(top[m][h], rows.max[m][h]);
        rescale_row<Cfg>(o, rows, m, h, grows ? ptx::exp2_approx((rows.max[m][h] - top[m][h]) * scale_log2) : 1.0f);
        if (grows) rows.max[m][h] = top[m][h];
      }
  }
  exponentiate<Cfg>(plan, scale_log2, s, rows);
}

struct RowEnd {
  float lse, inverse;  // O is to be multiplied by `inverse`
};

/// A row's LSE and factor of O from its maximum and sum; as Executor::finish, which says why. A sum is 0 or about 1 at
/// least, so a reciprocal with one step of Newton's is within 1.5 u32 of its own.
template <class Plan>
ATTEST_DEVICE RowEnd end_row(const Plan& plan, float scale_log2, float max, float keys_sum, bool takes_sink,
                             float sink) {
  const bool natural = plan.subtracts_before_log2e();
  float top = natural ? max : max * scale_log2, factor = 1, sum = keys_sum;
  if (takes_sink) {
    const float to_log2 = natural ? scale_log2 : 1.0f;
    const float sink_score = natural ? sink : plan.scale_log2(sink), keys = top;
    top = fmaxf(keys, sink_score);
    factor = keys == -infinity ? 1.0f : ptx::exp2_approx((keys - top) * to_log2);
    sum = sum * factor + ptx::exp2_approx((sink_score - top) * to_log2);
  }
  const float log2_sum = ptx::log2_approx(sum);
  float lse = natural ? top + plan.lse_of_log2(log2_sum) : plan.lse_of_log2(top + log2_sum);
  if (takes_sink && keys_sum == 0) lse = sink;
  if (sum == 0) lse = plan.lse_without_keys();
  float inverse = ptx::reciprocal_approx(sum);
  inverse = fmaf(inverse, fmaf(-sum, inverse, 1.0f), inverse);
  return {lse, sum == 0 ? 0.0f : factor * inverse};
}

}  // namespace attest::sm80
