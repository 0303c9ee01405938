#include "attest/reference/inputs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "attest/reference/rounding.h"
#include "round_format.h"

namespace attest {
namespace {

enum class Stream : std::uint64_t { q = 1, k = 2, v = 3, row_constant = 4 };

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit of the result depends on every bit of x.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t row_key(std::uint64_t seed, Stream stream, std::int64_t b, std::int64_t s, std::int64_t h) {
  std::uint64_t key = mix(seed ^ (static_cast<std::uint64_t>(stream) << 56));
  key = mix(key ^ static_cast<std::uint64_t>(b));
  key = mix(key ^ static_cast<std::uint64_t>(s));
  return mix(key ^ static_cast<std::uint64_t>(h));
}

// The finaliser "lowbias32" (Wellons 2018): 32 bits, which AVX2 multiplies eight at a time; it has no 64-bit product.
inline std::uint32_t mix32(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// Quantiles of |x| for a standard normal x, at i / cells; a random number picks a cell and a place in it. Straight
// lines between them are closer to the normal law than a 16-bit format resolves. The last cell would reach to infinity:
// it ends at 4.5. 16 KiB, half of a first-level cache.
constexpr int cell_bits = 12;
constexpr int cells = 1 << cell_bits;

std::array<float, cells + 1> make_quantiles() {
  std::array<float, cells + 1> quantiles{};
  double x = 0;
  for (int i = 1; i < cells; ++i) {  // Newton on erfc(x / sqrt 2) = 1 - i / cells, from the last quantile
    for (int step = 0; step < 8; ++step) {
      const double miss = std::erfc(x / std::sqrt(2.0)) - (1 - static_cast<double>(i) / cells);
      x += miss / (std::sqrt(2 / 3.141592653589793) * std::exp(-x * x / 2));
    }
    quantiles[i] = static_cast<float>(x);
  }
  quantiles[cells] = 4.5;
  return quantiles;
}

// Normal numbers times `factor`, rounded: number d of the row from its key and d alone.
template <class Round>
void fill_row(double* row, std::int64_t dim, std::uint64_t key, double factor, const float* quantiles, Round round) {
  const auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
  constexpr int place_bits = 31 - cell_bits;  // sign, cell, place in the cell
#pragma omp simd
  for (std::int64_t d = 0; d < dim; ++d) {
    const std::uint32_t bits = mix32(mix32(static_cast<std::uint32_t>(d) ^ low) ^ high);
    const auto cell = static_cast<std::int32_t>((bits >> place_bits) & (cells - 1));
    const double place = static_cast<std::int32_t>(bits & ((1u << place_bits) - 1)) * (1.0 / (1u << place_bits));
    const double below = quantiles[cell], above = quantiles[cell + 1];
    const double magnitude = below + place * (above - below);
    const double signed_factor = static_cast<std::int32_t>(bits) < 0 ? -factor : factor;
    row[d] = round(signed_factor * magnitude);
  }
}

void fill_normal(Tensor& tensor, Dtype dtype, std::uint64_t seed, Stream stream, double factor) {
  static const std::array<float, cells + 1> quantiles = make_quantiles();
  const auto [batch, seqlen, heads, dim] = tensor.extents;
  double* row = tensor.values.data();
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t s = 0; s < seqlen; ++s)
      for (std::int64_t h = 0; h < heads; ++h, row += dim) {
        const std::uint64_t key = row_key(seed, stream, b, s, h);
        switch (dtype) {
          case Dtype::fp16:
            fill_row(row, dim, key, factor, quantiles.data(), [](double x) { return round_to_format<Fp16>(x); });
            break;
          case Dtype::bf16:
            fill_row(row, dim, key, factor, quantiles.data(), [](double x) { return round_to_format<Bf16>(x); });
            break;
          case Dtype::fp8_e4m3:
            fill_row(row, dim, key, factor, quantiles.data(), [](double x) { return round_to_fp8<Fp8E4m3>(x); });
            break;
          case Dtype::fp8_e5m2:
            fill_row(row, dim, key, factor, quantiles.data(), [](double x) { return round_to_fp8<Fp8E5m2>(x); });
            break;
          case Dtype::fp32:
            fill_row(row, dim, key, factor, quantiles.data(),
                     [](double x) { return static_cast<double>(static_cast<float>(x)); });
            break;
        }
      }
}

// A scale of 0 moves no score: the inputs are then those of the default scale.
double magnitude_of_scale(const Problem& problem) {
  const double scale = std::abs(static_cast<float>(effective_softmax_scale(problem)));
  return scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(problem.headdim));
}

// The largest factor on a normal number that keeps Q and K finite, and S in fp32's range.
double largest_factor(Dtype dtype) {
  if (dtype == Dtype::fp8_e4m3) return 64;
  return dtype == Dtype::fp16 || dtype == Dtype::fp8_e5m2 ? 8192 : 0x1p40;
}

// Scores are normal with this deviation: two in five beyond +-100, one in 20,000 beyond +-500.
constexpr double large_score = 125;
constexpr double smallest_shift = 20, largest_shift = 320;

// Adds one constant of +-20 to +-320 to all scores of a row: the last component of every key is the same power of two,
// and that of the query is the constant over it.
void add_shift(const Problem& problem, std::uint64_t seed, Tensor& q, Tensor& k) {
  const double scale = magnitude_of_scale(problem);
  const double key_component =
      std::min(largest_factor(problem.dtype), std::exp2(std::round(0.5 * std::log2(largest_shift / scale))));
  const std::int64_t last = problem.headdim - 1;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t s = 0; s < problem.seqlen_k; ++s)
      for (std::int64_t h = 0; h < problem.nheads_k; ++h) k.at(b, s, h, last) = key_component;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t s = 0; s < problem.seqlen_q; ++s)
      for (std::int64_t h = 0; h < problem.nheads; ++h) {
        const std::uint64_t random = row_key(seed, Stream::row_constant, b, s, h);
        const double place = static_cast<double>(random >> 12) * 0x1p-52;
        double shift = smallest_shift + place * (largest_shift - smallest_shift);
        if (random & 1) shift = -shift;
        const double component = std::clamp(shift / (scale * key_component), -4 * largest_factor(problem.dtype),
                                            4 * largest_factor(problem.dtype));
        q.at(b, s, h, last) = round_to(problem.dtype, component);
      }
}

}  // namespace

Inputs make_inputs(const Case& c) {
  const Problem& p = c.problem;
  Inputs inputs{Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim}),
                Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim}),
                Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim_v})};
  double factor = 1;
  if (c.inputs == Distribution::large)
    factor = std::min(largest_factor(p.dtype), std::sqrt(large_score / (magnitude_of_scale(p) * std::sqrt(p.headdim))));

  if (c.inputs != Distribution::zero_q) fill_normal(inputs.q, p.dtype, c.seed, Stream::q, factor);
  fill_normal(inputs.k, p.dtype, c.seed, Stream::k, factor);
  if (c.inputs == Distribution::shift) add_shift(p, c.seed, inputs.q, inputs.k);

  if (c.inputs == Distribution::one_v) {
    std::fill(inputs.v.values.begin(), inputs.v.values.end(), 1.0);
  } else if (c.inputs == Distribution::one_hot_v) {
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t s = 0; s < p.seqlen_k; ++s)
        for (std::int64_t h = 0; h < p.nheads_k; ++h) inputs.v.at(b, s, h, s % p.headdim_v) = 1;
  } else {
    fill_normal(inputs.v, p.dtype, c.seed, Stream::v, 1);
  }
  return inputs;
}

}  // namespace attest
