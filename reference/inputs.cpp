#include "attest/reference/inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attest/reference/forward.h"
#include "attest/reference/rounding.h"
#include "random_rows.h"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A scale of 0 moves no score: the inputs are then those of the default scale.
double magnitude_of_scale(const Problem& problem) {
  const double scale = std::abs(static_cast<float>(effective_softmax_scale(problem)));
  return scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(problem.headdim));
}

// Factors on a normal number that keep Q and K finite, S in fp32's range and, in 8 bits, most numbers normal.
double largest_factor(Dtype dtype) {
  if (is_fp8(dtype)) return 64;
  return dtype == Dtype::fp16 ? 8192 : 0x1p40;
}
double smallest_factor(Dtype dtype) { return is_fp8(dtype) ? 1 : 0; }

// Scores are normal with this deviation: two in five beyond +-100, one in 20,000 beyond +-500.
constexpr double large_score = 125;
constexpr double smallest_shift = 20, largest_shift = 320;
constexpr double large_sink = 100;

// How the scores of a case get their size: Q and K are normal numbers times `factor`, and what 8 bits have no room for
// is left to the descales of both.
struct Magnitude {
  double factor = 1, descale = 1;
};

Magnitude magnitude_of(const Case& c) {
  if (c.inputs != Distribution::large) return {};
  const Problem& p = c.problem;
  const double wanted = std::sqrt(large_score / (magnitude_of_scale(p) * std::sqrt(static_cast<double>(p.headdim))));
  const double factor = std::clamp(wanted, smallest_factor(p.dtype), largest_factor(p.dtype));
  return {factor, is_fp8(p.dtype) ? wanted / factor : 1};
}

// Descales of 0.5 to 2. No two of a place's three are the same, nor those of neighbouring heads and batch entries; of
// one tensor at three places in four they are a power of two, whose product is exact.
enum Descaled : std::uint64_t { of_q, of_k, of_v };
double descale(std::uint64_t seed, Descaled tensor, std::int64_t b, std::int64_t h_k) {
  const std::uint64_t place = row_key(seed, Stream::descale, b, 0, h_k);
  if (place % 4 == tensor) return (b + h_k) % 2 ? 2 : 0.5;
  return std::exp2(2 * fraction_of(mix(place + 1 + tensor)) - 1);
}

Tensor make_descales(const Case& c, Descaled tensor) {
  const Problem& p = c.problem;
  Tensor descales({p.batch, p.nheads_k, 1, 1});
  const double factor = tensor == of_v ? 1 : magnitude_of(c).descale;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads_k; ++h)
      descales.at(b, h, 0, 0) = static_cast<float>(factor * descale(c.seed, tensor, b, h));
  return descales;
}

// Calls body(row, b, s, h) for every innermost row of a [batch, seqlen, heads, dim] tensor.
template <class Body>
void for_each_row(Tensor& tensor, const Body& body) {
  const auto [batch, seqlen, heads, dim] = tensor.extents;
  double* row = tensor.values.data();
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t s = 0; s < seqlen; ++s)
      for (std::int64_t h = 0; h < heads; ++h, row += dim) body(row, b, s, h);
}

void fill_normal(Tensor& tensor, Dtype dtype, std::uint64_t seed, Stream stream, double factor = 1) {
  for_each_row(tensor, [&](double* row, std::int64_t b, std::int64_t s, std::int64_t h) {
    fill_normal_row(row, tensor.extents[3], row_key(seed, stream, b, s, h), factor, dtype);
  });
}

// Q or K, so that the scores of every head have the same size whatever its descale.
void fill_scored(const Case& c, Tensor& tensor, Stream stream, Descaled descaled) {
  const Problem& p = c.problem;
  const double factor = magnitude_of(c).factor;
  const std::int64_t heads_per_descale = tensor.extents[2] / p.nheads_k;
  for_each_row(tensor, [&](double* row, std::int64_t b, std::int64_t s, std::int64_t h) {
    const bool even_out = is_fp8(p.dtype) && c.inputs == Distribution::large;
    const double own = even_out ? factor / descale(c.seed, descaled, b, h / heads_per_descale) : factor;
    fill_normal_row(row, p.headdim, row_key(c.seed, stream, b, s, h), own, p.dtype);
  });
}

// Adds one constant of +-20 to +-320 to all scores of a row: the last component of every key is the same power of two,
// and that of the query is the constant over it.
void add_shift(const Problem& problem, std::uint64_t seed, Inputs& inputs) {
  const double scale = magnitude_of_scale(problem), largest = largest_factor(problem.dtype);
  const double key_component = std::min(largest, std::exp2(std::round(0.5 * std::log2(largest_shift / scale))));
  const std::int64_t last = problem.headdim - 1;
  for_each_row(inputs.k, [&](double* row, std::int64_t, std::int64_t, std::int64_t) { row[last] = key_component; });
  for_each_row(inputs.q, [&](double* row, std::int64_t b, std::int64_t s, std::int64_t h) {
    const std::uint64_t random = row_key(seed, Stream::row_constant, b, s, h);
    double shift = smallest_shift + fraction_of(random) * (largest_shift - smallest_shift);
    if (random & 1) shift = -shift;
    double unit = scale * key_component;
    const std::int64_t h_k = h / (problem.nheads / problem.nheads_k);
    if (is_fp8(problem.dtype)) unit *= inputs.q_descale.at(b, h_k, 0, 0) * inputs.k_descale.at(b, h_k, 0, 0);
    row[last] = round_to(problem.dtype, std::clamp(shift / unit, -4 * largest, 4 * largest));
  });
}

// One entry of one row in `one_in` becomes NaN or, outside 8 bits, whose encoding saturates, an Inf of either sign.
void spoil(Tensor& tensor, Dtype dtype, std::uint64_t seed, Stream stream, std::uint64_t one_in) {
  for_each_row(tensor, [&](double* row, std::int64_t b, std::int64_t s, std::int64_t h) {
    const std::uint64_t random = row_key(seed, stream, b, s, h);
    if (random % one_in != 0) return;
    const std::uint64_t kind = is_fp8(dtype) ? 0 : (random >> 16) % 3;
    const double bad = kind == 0 ? std::numeric_limits<double>::quiet_NaN() : kind == 1 ? infinity : -infinity;
    row[(random >> 32) % static_cast<std::uint64_t>(tensor.extents[3])] = bad;
  });
}

double lowest_finite(Dtype dtype) {
  return dtype == Dtype::fp16 ? -65504 : dtype == Dtype::bf16 ? -0x1.fep127 : -0x1.fffffep127;
}

// Of `large` inputs, one row of the bias in 16 holds nothing but the lowest finite number, which people write for a
// masked key; in two of 16 every eighth entry is that, in two more -Inf.
void spoil_bias_row(std::uint64_t random, Dtype dtype, std::int64_t seqlen_k, double* row) {
  const std::uint64_t kind = random % 16;
  if (kind > 4) return;
  const double value = kind < 3 ? lowest_finite(dtype) : -infinity;
  for (std::int64_t j = 0; j < seqlen_k; ++j)
    if (kind == 0 || mix(random ^ static_cast<std::uint64_t>(j)) % 8 == 0) row[j] = value;
}

Tensor make_bias(const Case& c) {
  const Problem& p = c.problem;
  if (p.bias == Bias::none) return {};
  const bool per_batch = p.bias == Bias::bhqk || p.bias == Bias::bqk;
  const bool per_head = p.bias == Bias::bhqk || p.bias == Bias::hqk;
  Tensor bias({per_batch ? p.batch : 1, per_head ? p.nheads : 1, p.seqlen_q, p.seqlen_k});
  const Dtype dtype = output_dtype(p.dtype);
  for_each_row(bias, [&](double* row, std::int64_t b, std::int64_t h, std::int64_t i) {
    fill_normal_row(row, p.seqlen_k, row_key(c.seed, Stream::bias, b, i, h), 1, dtype);
    if (c.inputs == Distribution::large)
      spoil_bias_row(row_key(c.seed, Stream::bias_rows, b, i, h), dtype, p.seqlen_k, row);
  });
  return bias;
}

Tensor make_sink(const Case& c) {
  if (!c.problem.sink) return {};
  Tensor sink({1, c.problem.nheads, 1, 1});
  for (std::int64_t h = 0; h < c.problem.nheads; ++h)
    fill_normal_row(&sink.at(0, h, 0, 0), 1, row_key(c.seed, Stream::sink, 0, 0, h),
                    c.inputs == Distribution::large ? large_sink : 1, Dtype::fp32);
  return sink;
}

// Takes from each row of dO what it has along O.
void make_orthogonal(const Tensor& o, Dtype dtype, Tensor& dout) {
  const std::int64_t dim = o.extents[3];
  for_each_row(dout, [&](double* row, std::int64_t b, std::int64_t s, std::int64_t h) {
    const double* const along = &o.values[static_cast<std::size_t>(o.index(b, s, h, 0))];
    double product = 0, square = 0;
    for (std::int64_t d = 0; d < dim; ++d) product += row[d] * along[d], square += along[d] * along[d];
    if (!(square > 0)) return;
    for (std::int64_t d = 0; d < dim; ++d) row[d] = round_to(dtype, row[d] - product / square * along[d]);
  });
}

}  // namespace

Tensor make_alibi_slopes(const Problem& p) {
  if (!p.alibi) return {};
  Tensor slopes({p.batch, p.nheads, 1, 1});
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h) {
      const double slope = std::exp2(-8 * static_cast<double>(h + 1) / static_cast<double>(p.nheads));
      slopes.at(b, h, 0, 0) = static_cast<float>(slope * (1 + 0.25 * static_cast<double>(b % 4)));
    }
  return slopes;
}

Inputs make_inputs(const Case& c) {
  const Problem& p = c.problem;
  Inputs inputs{Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim}),
                Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim}),
                Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim_v})};
  if (is_fp8(p.dtype)) {
    inputs.q_descale = make_descales(c, of_q);
    inputs.k_descale = make_descales(c, of_k);
    inputs.v_descale = make_descales(c, of_v);
  }
  inputs.bias = make_bias(c);
  inputs.alibi_slopes = make_alibi_slopes(p);
  inputs.sink = make_sink(c);

  if (c.inputs != Distribution::zero_q) fill_scored(c, inputs.q, Stream::q, of_q);
  fill_scored(c, inputs.k, Stream::k, of_k);
  if (c.inputs == Distribution::shift) add_shift(p, c.seed, inputs);

  if (c.inputs == Distribution::one_v) {
    std::fill(inputs.v.values.begin(), inputs.v.values.end(), 1.0);
  } else if (c.inputs == Distribution::one_hot_v) {
    for_each_row(inputs.v, [&](double* row, std::int64_t, std::int64_t s, std::int64_t) { row[s % p.headdim_v] = 1; });
  } else {
    fill_normal(inputs.v, p.dtype, c.seed, Stream::v);
  }
  if (c.inputs == Distribution::non_finite) {
    spoil(inputs.q, p.dtype, c.seed, Stream::bad_q, 16);
    spoil(inputs.k, p.dtype, c.seed, Stream::bad_k, 256);
    spoil(inputs.v, p.dtype, c.seed, Stream::bad_v, 64);
  }
  if (c.backward) {
    inputs.dout = Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim_v});
    fill_normal(inputs.dout, output_dtype(p.dtype), c.seed, Stream::dout);
    if (c.inputs == Distribution::orthogonal_dout)
      make_orthogonal(forward(p, inputs).o, output_dtype(p.dtype), inputs.dout);
  }
  return inputs;
}

}  // namespace attest
