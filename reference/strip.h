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

/// The softmax_scale that kernels see: they take it as a float.
double kernel_softmax_scale(const Problem& problem);

/// What every strip of a call shares: V with its NaN and Inf replaced by 0, and where those were.
struct PreparedInputs {
  PreparedInputs(const Problem& p, const Inputs& i);

  const Problem& problem;
  const Inputs& inputs;
  const Tensor& finite_v() const { return v_copy.values.empty() ? inputs.v : v_copy; }
  bool all_v_finite() const { return v_copy.values.empty(); }

 private:
  Tensor v_copy;
};

/// Which rows a strip holds.
struct StripPlace {
  std::int64_t b, h, h_k;  // batch entry, query head, key head
  std::int64_t first_row, num_rows;
  KeyRange keys;  // of all its rows
};

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
  KeyRange keys;   // of the row, relative to the strip's first key
  double max = 0;  // m
  double sum = 0;  // l = sum exp(s - m)
};

/// scores = softmax_scale Q K^T, num_rows x keys.
void strip_scores(const PreparedInputs& in, const StripPlace& place, double* scores);

/// weights = exp(score - row maximum) at the row's keys and 0 elsewhere; `weights` may be `scores`.
void strip_softmax(const PreparedInputs& in, const StripPlace& place, const double* scores, double* weights,
                   RowSoftmax* rows);

/// Writes O and LSE of the strip's rows from its weights.
void strip_output(const PreparedInputs& in, const StripPlace& place, const double* weights, const RowSoftmax* rows,
                  Forward& out);

/// Adds the worst-case bounds, and the variances where truth has them, of the strip's rows. `scores` and `weights` as
/// above; all three strips are overwritten.
void strip_budget(const PreparedInputs& in, const StripPlace& place, double* scores, double* weights, double* spare,
                  const RowSoftmax* rows, Truth& truth);

}  // namespace attest
