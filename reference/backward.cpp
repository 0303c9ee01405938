#include "attest/reference/backward.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "attest/problem/error.h"
#include "attest/reference/attends.h"
#include "gradient_block.h"
#include "gradient_bounds.h"

namespace attest {
namespace {

// Below this many multiply-adds a team of threads costs more than it saves.
constexpr double work_for_a_team = 1 << 21;

// Calls body(unit, block) for every unit, each thread with a block of its own. No two units write to the same place.
void for_each_unit(const Problem& p, std::int64_t units,
                   const std::function<void(std::int64_t, GradientBlock&)>& body) {
  const double work = static_cast<double>(p.batch) * p.nheads * p.seqlen_q * p.seqlen_k * (p.headdim + p.headdim_v);
  const int threads =
      work < work_for_a_team ? 1 : static_cast<int>(std::min<std::int64_t>(omp_get_max_threads(), units));
  if (threads <= 1) {
    GradientBlock block;
    for (std::int64_t unit = 0; unit < units; ++unit) body(unit, block);
    return;
  }
  std::vector<GradientBlock> blocks(static_cast<std::size_t>(threads));
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t unit = 0; unit < units; ++unit) body(unit, blocks[omp_get_thread_num()]);
}

// out += weights m, with what is NaN or Inf in m (whose finite copy `finite` is) only where the pair is visible.
// Pairs are (row of weights, column of weights) of `visible`.
template <class Weights, class Visible>
void add_product(const Weights& weights, const Visible& visible, const HeadMap& m, const HeadMap& finite,
                 RowMatrix& out) {
  out.noalias() += weights * finite;
  if (m.data() == finite.data()) return;
  for (Eigen::Index j = 0; j < m.rows(); ++j)
    for (Eigen::Index c = 0; c < m.cols(); ++c) {
      if (std::isfinite(m(j, c))) continue;
      for (Eigen::Index r = 0; r < out.rows(); ++r)
        if (visible(r, j) != 0) out(r, c) += weights(r, j) * m(j, c);
    }
}

// `sum` with `pre` off goes through the softmax_scale, the descales and the output's rounding.
double through_output(const Numerics& n, double value, double pre, double terms) {
  const double scaled = pre + 4 * u32 * (std::abs(value) + pre);
  return scaled + n.u_out * (std::abs(value) + scaled) + n.floor_out + (terms + 1) * 0x1p-126;
}

// The keys of one unit's gradient, or the queries: sums over blocks of weights times a matrix, and their error.
struct ErrorSum {
  RowMatrix error, magnitude;  // sum of bounds times |m|, sum of (|weights| + bounds) times |m|
  void reset(std::int64_t rows, std::int64_t cols) {
    error.setZero(rows, cols);
    magnitude.setZero(rows, cols);
  }
  template <class Weights, class Errors>
  void add(const Weights& weights, const Errors& errors, const HeadMap& m) {
    const RowMatrix abs_m = m.cwiseAbs();
    error.noalias() += errors * abs_m;
    magnitude.noalias() += (weights.cwiseAbs() + errors) * abs_m;
  }
};

class Passes {
 public:
  Passes(const BackwardInputs& in, Gradients& out, Gradients* bounds)
      : in_(in), p_(in.problem), out_(out), bounds_(bounds) {}

  void run() {
    for_each_unit(p_, p_.batch * p_.nheads * in_.strips_a_batch,
                  [this](std::int64_t unit, GradientBlock& block) { query_strip(unit, block); });
    const std::int64_t key_blocks = (p_.seqlen_k + keys_per_block - 1) / keys_per_block;
    for_each_unit(p_, p_.batch * p_.nheads_k * key_blocks, [&](std::int64_t unit, GradientBlock& block) {
      key_block(unit / key_blocks / p_.nheads_k, unit / key_blocks % p_.nheads_k, unit % key_blocks, block);
    });
    if (p_.bias != Bias::none)
      for_each_unit(p_, out_.dbias.extents[0] * out_.dbias.extents[1] * in_.strips_a_batch,
                    [this](std::int64_t unit, GradientBlock& block) { bias_strip(unit, block); });
    if (p_.sink) sinks();
  }

 private:
  std::int64_t group() const { return p_.nheads / p_.nheads_k; }

  BlockPlace rows_of(std::int64_t b, std::int64_t h, std::int64_t strip) const {
    const std::int64_t first = strip * rows_per_strip;
    return {b, h, h / group(), first, std::clamp<std::int64_t>(queries_of(p_, b) - first, 0, rows_per_strip), {}};
  }

  // Calls body(place) for the blocks of the strip's visible keys, filled.
  template <class Body>
  void for_each_key_block(BlockPlace place, std::int64_t strip, GradientBlock& block, const Body& body) {
    for (const KeyRange& keys : in_.keys(place.b, strip))
      for (std::int64_t first = keys.begin; first < keys.end; first += keys_per_block) {
        place.keys = {first, std::min(keys.end, first + keys_per_block)};
        fill(place, block);
        body(place);
      }
  }

  void fill(const BlockPlace& place, GradientBlock& block) const {
    fill_block(in_, place, block);
    if (bounds_) fill_block_errors(in_, place, block);
  }

  // dQ of a strip of rows.
  void query_strip(std::int64_t unit, GradientBlock& block) {
    const std::int64_t strip = unit % in_.strips_a_batch, h = unit / in_.strips_a_batch % p_.nheads,
                       b = unit / in_.strips_a_batch / p_.nheads;
    const BlockPlace place = rows_of(b, h, strip);
    if (place.num_rows == 0) return;
    RowMatrix dq = RowMatrix::Zero(place.num_rows, p_.headdim);
    ErrorSum errors;
    if (bounds_) errors.reset(place.num_rows, p_.headdim);
    for_each_key_block(place, strip, block, [&](const BlockPlace& at) {
      const HeadMap k = head_rows(in_.inputs.k, b, at.h_k, at.keys.begin, at.keys.size());
      const HeadMap finite = head_rows(in_.finite_k(), b, at.h_k, at.keys.begin, at.keys.size());
      const RowMatrix& dx = gradient_of_products(in_, block);
      add_product(dx, block.visible, k, finite, dq);
      if (bounds_) errors.add(dx, block.dx_error, finite);
    });
    const double factor = in_.dq_scale(b, place.h_k);
    for (std::int64_t r = 0; r < place.num_rows; ++r)
      for (std::int64_t c = 0; c < p_.headdim; ++c) {
        const double value = factor * dq(r, c);
        out_.dq.at(b, place.first_row + r, h, c) = value;
        if (!bounds_) continue;
        const std::int64_t N = in_.visible_keys[b * p_.seqlen_q + place.first_row + r];
        const double pre =
            std::abs(factor) * (errors.error(r, c) + product_sum_error(*in_.numerics, N) * errors.magnitude(r, c));
        bounds_->dq.at(b, place.first_row + r, h, c) =
            N == 0 ? 0 : through_output(*in_.numerics, value, pre, static_cast<double>(N));
      }
  }

  // dK and dV of a block of keys: of each head of the group, then their sum.
  void key_block(std::int64_t b, std::int64_t h_k, std::int64_t index, GradientBlock& block) {
    const KeyRange keys{index * keys_per_block, std::min(keys_of(p_, b), (index + 1) * keys_per_block)};
    if (keys.size() <= 0) return;
    KeyGradient dk(keys.size(), p_.headdim), dv(keys.size(), p_.headdim_v);
    for (std::int64_t h = h_k * group(); h < (h_k + 1) * group(); ++h) {
      dk.start_head(bounds_ != nullptr), dv.start_head(bounds_ != nullptr);
      for (std::int64_t strip = 0; strip < in_.strips_a_batch; ++strip) {
        BlockPlace at = rows_of(b, h, strip);
        if (at.num_rows == 0) continue;
        for (const KeyRange& seen : in_.keys(b, strip)) {
          at.keys = {std::max(seen.begin, keys.begin), std::min(seen.end, keys.end)};
          if (at.keys.size() <= 0) continue;
          fill(at, block);
          add_rows(at, in_.inputs.q, in_.finite_q(), gradient_of_products(in_, block), block.dx_error, block, keys, dk);
          add_rows(at, in_.inputs.dout, in_.finite_dout(), block.p, block.p_error, block, keys, dv);
        }
      }
      finish_head(b, keys, in_.dk_scale(b, h_k), dk);
      finish_head(b, keys, 1, dv);
    }
    finish_keys(b, h_k, keys, dk, out_.dk, bounds_ ? &bounds_->dk : nullptr);
    finish_keys(b, h_k, keys, dv, out_.dv, bounds_ ? &bounds_->dv : nullptr);
  }

  struct KeyGradient {
    KeyGradient(std::int64_t keys, std::int64_t dim)
        : total(RowMatrix::Zero(keys, dim)),
          total_error(RowMatrix::Zero(keys, dim)),
          shares(RowMatrix::Zero(keys, dim)) {}
    void start_head(bool bounds) {
      head.setZero(total.rows(), total.cols());
      if (bounds) errors.reset(total.rows(), total.cols());
    }
    RowMatrix total, total_error, shares;  // over heads; shares: sum of |one head's| and its error
    RowMatrix head;
    ErrorSum errors;
  };

  // Adds weights^T m of one block, where m's rows are the block's queries.
  void add_rows(const BlockPlace& at, const Tensor& tensor, const Tensor& finite, const RowMatrix& weights,
                const RowMatrix& weight_errors, const GradientBlock& block, const KeyRange& keys,
                KeyGradient& to) const {
    const HeadMap m = head_rows(tensor, at.b, at.h, at.first_row, at.num_rows);
    const HeadMap finite_m = head_rows(finite, at.b, at.h, at.first_row, at.num_rows);
    const Eigen::Index first = at.keys.begin - keys.begin, count = at.keys.size();
    RowMatrix sum = to.head.middleRows(first, count);
    add_product(weights.transpose(), block.visible.transpose(), m, finite_m, sum);
    to.head.middleRows(first, count) = sum;
    if (!bounds_) return;
    ErrorSum part;
    part.reset(count, m.cols());
    part.add(weights.transpose(), weight_errors.transpose(), finite_m);
    to.errors.error.middleRows(first, count) += part.error;
    to.errors.magnitude.middleRows(first, count) += part.magnitude;
  }

  void finish_head(std::int64_t b, const KeyRange& keys, double factor, KeyGradient& g) const {
    g.head *= factor;
    g.total += g.head;
    if (!bounds_) return;
    const Numerics& n = *in_.numerics;
    for (Eigen::Index j = 0; j < g.head.rows(); ++j) {
      // All heads of a group may go through one accumulator.
      const double sum_error = product_sum_error(n, group() * in_.visible_rows[b * p_.seqlen_k + keys.begin + j]);
      for (Eigen::Index c = 0; c < g.head.cols(); ++c) {
        double off = std::abs(factor) * (g.errors.error(j, c) + sum_error * g.errors.magnitude(j, c));
        if (group() > 1) off += n.u_share * (std::abs(g.head(j, c)) + off) + (n.u_share > 0 ? n.floor_share : 0);
        g.total_error(j, c) += off;
        g.shares(j, c) += std::abs(g.head(j, c)) + off;
      }
    }
  }

  void finish_keys(std::int64_t b, std::int64_t h_k, const KeyRange& keys, const KeyGradient& g, Tensor& out,
                   Tensor* bounds) const {
    for (Eigen::Index j = 0; j < g.total.rows(); ++j)
      for (Eigen::Index c = 0; c < g.total.cols(); ++c) {
        out.at(b, keys.begin + j, h_k, c) = g.total(j, c);
        if (!bounds) continue;
        const double M = static_cast<double>(group() * in_.visible_rows[b * p_.seqlen_k + keys.begin + j]);
        const double added = compounded(static_cast<double>(group() - 1) * u32) * g.shares(j, c);
        bounds->at(b, keys.begin + j, h_k, c) =
            M == 0 ? 0 : through_output(*in_.numerics, g.total(j, c), g.total_error(j, c) + added, M);
      }
  }

  // dbias of a strip of rows: dS of all batch entries and heads that share it.
  void bias_strip(std::int64_t unit, GradientBlock& block) {
    const auto& extents = out_.dbias.extents;
    const std::int64_t strip = unit % in_.strips_a_batch, bias_h = unit / in_.strips_a_batch % extents[1],
                       bias_b = unit / in_.strips_a_batch / extents[1];
    const std::int64_t sharers = p_.batch / extents[0] * (p_.nheads / extents[1]);
    const double order = compounded(static_cast<double>(sharers) * u32);
    for (std::int64_t b = extents[0] == 1 ? 0 : bias_b; b < (extents[0] == 1 ? p_.batch : bias_b + 1); ++b)
      for (std::int64_t h = extents[1] == 1 ? 0 : bias_h; h < (extents[1] == 1 ? p_.nheads : bias_h + 1); ++h) {
        const BlockPlace place = rows_of(b, h, strip);
        if (place.num_rows == 0) continue;
        for_each_key_block(place, strip, block, [&](const BlockPlace& at) {
          for (std::int64_t r = 0; r < at.num_rows; ++r)
            for (std::int64_t j = 0; j < at.keys.size(); ++j) {
              if (block.visible(r, j) == 0) continue;
              out_.dbias.at(bias_b, bias_h, at.first_row + r, at.keys.begin + j) += block.ds(r, j);
              if (bounds_)
                bounds_->dbias.at(bias_b, bias_h, at.first_row + r, at.keys.begin + j) +=
                    block.ds_error(r, j) + order * (std::abs(block.ds(r, j)) + block.ds_error(r, j));
            }
        });
      }
  }

  void sinks() {
    const double order = compounded(static_cast<double>(p_.batch * p_.seqlen_q) * u32);
    for (std::int64_t h = 0; h < p_.nheads; ++h) {
      const double sink = in_.prepared.sink(h);
      double sum = 0, error = 0, magnitude = 0;
      for (std::int64_t b = 0; b < p_.batch; ++b)
        for (std::int64_t i = 0; i < queries_of(p_, b); ++i) {
          if (key_ranges(p_, b, i).empty()) continue;  // O is 0 whatever the sink
          const double lse = in_.forward.lse.at(b, h, i, 0), D = in_.D.at(b, h, i, 0);
          const double weight = std::exp(sink - lse);
          sum -= weight * D;
          if (!bounds_) continue;
          Pair pair{};
          pair.score = sink;
          pair.cap = 1;
          pair.p = weight;
          const RowErrors row{lse, in_.lse_bound ? std::min(in_.lse_bound->at(b, h, i, 0), hopeless) : 0, D,
                              in_.D_bound.at(b, h, i, 0)};
          const double off = PairErrors(p_, *in_.numerics).of(row, pair).ds;
          error += off;
          magnitude += std::abs(weight * D) + off;
        }
      out_.dsink.at(0, h, 0, 0) = sum;
      if (bounds_) bounds_->dsink.at(0, h, 0, 0) = error + order * magnitude + u32 * std::abs(sum);
    }
  }

  const BackwardInputs& in_;
  const Problem& p_;
  Gradients& out_;
  Gradients* bounds_;
};

Gradients zero_gradients(const Problem& p, const Inputs& in) {
  if (in.dout.extents != std::array<std::int64_t, 4>{p.batch, p.seqlen_q, p.nheads, p.headdim_v})
    throw InvalidInput("dout", "", "is not there, or not of the shape (batch, seqlen_q, nheads, headdim_v)");
  Gradients out{Tensor(in.q.extents), Tensor(in.k.extents), Tensor(in.v.extents)};
  if (p.sink) out.dsink = Tensor({1, p.nheads, 1, 1});
  if (p.bias != Bias::none) out.dbias = Tensor(in.bias.extents);
  return out;
}

}  // namespace

Gradients backward(const Problem& problem, const Inputs& inputs) {
  return backward(problem, inputs, forward(problem, inputs));
}

Gradients backward(const Problem& problem, const Inputs& inputs, const Forward& handed) {
  Gradients out = zero_gradients(problem, inputs);
  Passes(BackwardInputs(problem, inputs, handed, nullptr, nullptr), out, nullptr).run();
  return out;
}

void add_gradients(const Problem& problem, const Inputs& inputs, Truth& truth, const Forward* handed) {
  truth.gradients = zero_gradients(problem, inputs);
  truth.gradient_bounds = truth.gradients;
  const BackwardInputs in(problem, inputs, handed ? *handed : truth.forward, &truth.numerics,
                          handed ? nullptr : &truth);
  Passes(in, truth.gradients, &truth.gradient_bounds).run();
}

}  // namespace attest
