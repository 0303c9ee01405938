// A strip: the scores of up to 64 queries of one head against the keys that any of them sees.
#pragma once
#include <Eigen/Core>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "attest/reference/forward.h"
#include "attest/reference/key_range.h"

namespace attest {

inline constexpr std::int64_t rows_per_strip = 64;

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using StripMap = Eigen::Map<RowMatrix>;
using HeadMap = Eigen::Map<const RowMatrix, 0, Eigen::OuterStride<>>;

/// One head of a [batch, seqlen, heads, dim] tensor, rows first to first + num_rows - 1, as a matrix of num_rows x dim.
HeadMap head_rows(const Tensor& tensor, std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t num_rows);

/// What every strip of a call shares: V with its NaN and Inf replaced by 0, and where those were.
struct PreparedInputs {
  PreparedInputs(const Problem& p, const Inputs& i);

  const Problem& problem;
  const Inputs& inputs;
  /// What q.k is multiplied by: softmax_scale as kernels see it, a float, and the descales of Q and K.
  double score_scale(std::int64_t b, std::int64_t h_k) const;
  double softcap() const;                                  // as a float too
  double v_scale(std::int64_t b, std::int64_t h_k) const;  // what V is multiplied by
  double sink(std::int64_t h) const;                       // -Inf where the problem has none
  double alibi_slope(std::int64_t b, std::int64_t h) const;
  /// The bias of query i against keys 0 to seqlen_k - 1; null where the problem has none.
  const double* bias_row(std::int64_t b, std::int64_t h, std::int64_t i) const;
  const Tensor& finite_v() const { return v_copy.values.empty() ? inputs.v : v_copy; }
  bool all_v_finite() const { return v_copy.values.empty(); }

 private:
  Tensor v_copy;
};

/// Which rows a strip holds. Its columns are the keys of its ranges, one range after the other: the keys between two
/// ranges, which none of the rows sees, take no part.
struct StripPlace {
  std::int64_t b, h, h_k;  // batch entry, query head, key head
  std::int64_t first_row, num_rows;
  KeyRanges keys;  // that hold the keys of all its rows

  std::int64_t width() const { return keys.size(); }
};

/// Calls body(range of keys, first column of it) for each range of the strip.
template <class Body>
void for_each_range(const StripPlace& place, const Body& body) {
  std::int64_t column = 0;
  for (const KeyRange& range : place.keys) {
    body(range, column);
    column += range.size();
  }
}

/// The strip times the rows of one head of K or V that are its keys: num_rows x dim.
RowMatrix times_keys(const StripPlace& place, const double* strip, const Tensor& tensor);

/// A thread's memory: strips of rows_per_strip x seqlen_k, taken once and never initialised.
class StripMemory {
 public:
  StripMemory(std::int64_t seqlen_k, int num_strips);
  double* strip(int which) { return memory_.get() + which * stride_; }

 private:
  std::int64_t stride_;
  struct Free {
    void operator()(double* memory) const { std::free(memory); }
  };
  std::unique_ptr<double[], Free> memory_;
};

/// What a row's softmax came to.
struct RowSoftmax {
  KeyRanges columns;       // those of the strip whose keys the row sees; keys apart may be columns side by side
  bool apart = false;      // whether these keys are two intervals
  double max = 0;          // m, over the scores and the sink; 0 where all of them are -Inf
  double sum = 0;          // l = sum exp(s - m), the sink's weight included; 0 where nothing weighs anything
  double sink_weight = 0;  // exp(sink - m)
  std::vector<std::int64_t> minus_inf;  // the columns, ascending, whose scores are -Inf
};

/// Calls body(column) for every column whose key the row sees, in loops that the compiler may vectorise.
template <class Body>
inline void for_each_column(const RowSoftmax& row, const Body& body) {
  for (const KeyRange& part : row.columns) {
#pragma omp simd
    for (std::int64_t j = part.begin; j < part.end; ++j) body(j);
  }
}

/// Sets the columns whose keys a row does not see to 0, in every row of the strip.
void clear_unseen(const StripPlace& place, const RowSoftmax* rows, double* strip);

/// scores = softcap(scale Q K^T) + alibi + bias, num_rows x width, before the mask. `slopes`, if given, gets
/// d(score) / d(scale q.k), which is softcap's derivative 1 - tanh^2, or 1.
void strip_scores(const PreparedInputs& in, const StripPlace& place, double* scores, double* slopes = nullptr);

/// weights = exp(score - row maximum) at the keys that the row sees and 0 elsewhere; `weights` may be `scores`.
void strip_softmax(const PreparedInputs& in, const StripPlace& place, const double* scores, double* weights,
                   RowSoftmax* rows);

/// Writes O and LSE of the strip's rows from its weights.
void strip_output(const PreparedInputs& in, const StripPlace& place, const double* weights, const RowSoftmax* rows,
                  Forward& out);

/// The thread-private strips of one call of strip_budget(). `scores` and `weights` as above; all are overwritten.
struct BudgetStrips {
  double *scores, *weights;
  double* slopes;  // of strip_scores(); null without a softcap
  double* spare;
};

/// Adds the worst-case bounds, and the variances where truth has them, of the strip's rows.
void strip_budget(const PreparedInputs& in, const StripPlace& place, BudgetStrips strips, const RowSoftmax* rows,
                  Truth& truth);

}  // namespace attest
