#include "attest/reference/forward.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "attest/reference/attends.h"
#include "statistical_limits.h"
#include "strip.h"

namespace attest {
namespace {

// Below this many multiply-adds a team of threads costs more than it saves.
constexpr double work_for_a_team = 1 << 23;

// Calls body(place, memory) for every strip, each thread with memory of its own.
template <class Body>
void for_each_strip(const Problem& p, int num_strips, const Body& body) {
  const std::int64_t blocks = (p.seqlen_q + rows_per_strip - 1) / rows_per_strip;
  const std::int64_t total = p.batch * p.nheads * blocks;
  const double work = static_cast<double>(p.batch) * p.nheads * p.seqlen_q * p.seqlen_k * (p.headdim + p.headdim_v);
  const int threads =
      work < work_for_a_team ? 1 : static_cast<int>(std::min<std::int64_t>(omp_get_max_threads(), total));

  const auto strip = [&](std::int64_t index, StripMemory& memory) {
    const std::int64_t first_row = index % blocks * rows_per_strip;
    const std::int64_t h = index / blocks % p.nheads;
    const std::int64_t b = index / blocks / p.nheads;
    const std::int64_t num_rows = std::min(rows_per_strip, queries_of(p, b) - first_row);
    if (num_rows <= 0) return;
    body(StripPlace{b, h, h / (p.nheads / p.nheads_k), first_row, num_rows,
                    key_ranges_of_rows(p, b, first_row, first_row + num_rows)},
         memory);
  };
  std::vector<StripMemory> memory;
  for (int t = 0; t < std::max(threads, 1); ++t) memory.emplace_back(p.seqlen_k, num_strips);
  if (threads <= 1) {
    for (std::int64_t i = 0; i < total; ++i) strip(i, memory[0]);
    return;
  }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t i = 0; i < total; ++i) strip(i, memory[omp_get_thread_num()]);
}

Forward empty_forward(const Problem& p) {
  return {Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim_v}), Tensor({p.batch, p.nheads, p.seqlen_q, 1})};
}

}  // namespace

Forward forward(const Problem& problem, const Inputs& inputs) {
  Forward out = empty_forward(problem);
  const PreparedInputs in(problem, inputs);
  for_each_strip(problem, 1, [&](const StripPlace& place, StripMemory& memory) {
    std::array<RowSoftmax, rows_per_strip> rows;
    strip_scores(in, place, memory.strip(0));
    strip_softmax(in, place, memory.strip(0), memory.strip(0), rows.data());
    strip_output(in, place, memory.strip(0), rows.data(), out);
  });
  return out;
}

namespace {

// Whether roundings follow from each other though the inputs are random, so that no statistics hold of them.
bool repeats_roundings(const Problem& problem, const Numerics& numerics) {
  // With few coordinates of 8 bits there are too few different scores: rows repeat each other, bit for bit. Where
  // scores are rounded to 16 bits, a row of one coordinate rounds products with one number, and their errors go with
  // the other one's mantissa.
  const std::int64_t fewest_coordinates = is_fp8(problem.dtype) ? 4 : numerics.u_S > 0 ? 2 : 1;
  if (problem.headdim < fewest_coordinates) return true;
  // A softcap far below the scores leaves two of them, c and -c: from |x| = c ln(2c / spacing) / 2 on, what a score x
  // still differs by, 2c exp(-2|x|/c), is below a spacing of P. Scores have a deviation of scale sqrt(headdim);
  // here most lie beyond, rows round alike, and with ALiBi in step.
  if (problem.softcap == 0 || numerics.u_P == 0) return false;
  const double saturated = problem.softcap * std::log(std::max(1.0, problem.softcap / numerics.u_P)) / 2;
  const double deviation = std::abs(effective_softmax_scale(problem)) * std::sqrt(static_cast<double>(problem.headdim));
  return saturated < deviation / 2;
}

// The deviation of a component of K over the keys of a batch entry, root mean square over its components.
double key_deviation(const PreparedInputs& in, std::int64_t b, std::int64_t h_k) {
  const auto k = head_rows(in.inputs.k, b, h_k, 0, keys_of(in.problem, b));
  if (k.size() == 0) return 0;
  return std::sqrt((k.rowwise() - k.colwise().mean()).squaredNorm() / static_cast<double>(k.size()));
}

// docs/numerics.md, "Rows alike". A rounding error is a sawtooth of period 1 in spacings; a normal displacement of
// deviation x smears it to exp(-2 pi^2 x^2) at most, and the squares of two rows' errors go together by both rows'
// squares of that.
Tensor alike_rows(const PreparedInputs& in, const Numerics& numerics, const Tensor& like) {
  const Problem& p = in.problem;
  Tensor alike(like.extents);
  const double spacing = 2 * numerics.u_P, cap = p.softcap > 0 ? in.softcap() : std::numeric_limits<double>::infinity();
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h) {
      const std::int64_t h_k = h / (p.nheads / p.nheads_k);
      const double per_length = std::abs(in.score_scale(b, h_k)) * key_deviation(in, b, h_k);
      const auto q = head_rows(in.inputs.q, b, h, 0, queries_of(p, b));
      for (std::int64_t i = 0; i < q.rows(); ++i) {
        const double x = std::min(per_length * q.row(i).norm(), cap) / spacing;
        alike.at(b, h, i, 0) = std::exp(-4 * std::numbers::pi * std::numbers::pi * x * x);
      }
    }
  return alike;
}

}  // namespace

Truth empty_truth(const Problem& problem, const Inputs& inputs, const Numerics& numerics, bool statistical) {
  Truth truth;
  truth.forward = empty_forward(problem);
  truth.numerics = numerics;
  truth.o_bound = Tensor(truth.forward.o.extents);
  truth.lse_bound = Tensor(truth.forward.lse.extents);
  if (repeats_roundings(problem, numerics)) statistical = false;
  if (statistical) {
    // Where P stays in fp32 its rounding no longer explains O's error, and the sums' has no variance here.
    if (numerics.u_P > 0) truth.o_variance = Tensor(truth.forward.o.extents);
    if (only_P_rounds(numerics)) truth.roundings = Tensor(truth.forward.lse.extents);
    if (problem.alibi && numerics.u_P > 0)
      truth.alike = alike_rows(PreparedInputs(problem, inputs), numerics, truth.forward.lse);
    truth.lse_variance = Tensor(truth.forward.lse.extents);
  }
  return truth;
}

Truth forward_with_budget(const Problem& problem, const Inputs& inputs, const Numerics& numerics, bool statistical) {
  Truth truth = empty_truth(problem, inputs, numerics, statistical);
  const PreparedInputs in(problem, inputs);
  const bool capped = problem.softcap > 0;
  for_each_strip(problem, capped ? 4 : 3, [&](const StripPlace& place, StripMemory& memory) {
    std::array<RowSoftmax, rows_per_strip> rows;
    const BudgetStrips strips{memory.strip(0), memory.strip(1), capped ? memory.strip(3) : nullptr, memory.strip(2)};
    strip_scores(in, place, strips.scores, strips.slopes);
    strip_softmax(in, place, strips.scores, strips.weights, rows.data());
    strip_output(in, place, strips.weights, rows.data(), truth.forward);
    strip_budget(in, place, strips, rows.data(), truth);
  });
  return truth;
}

}  // namespace attest
