#include "emulated_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "attest/reference/attends.h"
#include "attest/reference/rounding.h"

namespace attest {
namespace {

float truncated(double x) {  // to float, towards zero
  const auto nearest = static_cast<float>(x);
  return std::abs(static_cast<double>(nearest)) > std::abs(x) ? std::nextafter(nearest, 0.0f) : nearest;
}

// Adds a[n] * b[n] to `sum` the way the accumulator does.
template <class A, class B>
float accumulate(Accumulator kind, float sum, std::int64_t count, A a, B b) {
  if (kind == Accumulator::tensor_core) {
    for (std::int64_t first = 0; first < count; first += 16) {
      double exact = sum;
      for (std::int64_t n = first; n < std::min(count, first + 16); ++n) exact += static_cast<double>(a(n)) * b(n);
      sum = truncated(exact);
    }
    return sum;
  }
  for (std::int64_t n = 0; n < count; ++n) {
    if (kind == Accumulator::fused) {
      sum = std::fma(a(n), b(n), sum);
    } else {
      volatile float product = a(n) * b(n);  // volatile: the compiler would fuse it
      sum += product;
    }
  }
  return sum;
}

std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Numerics EmulatedKernel::numerics() const {
  Numerics n = flash_numerics(dtype, tile);
  if (lazy_rescale) n.max_P = 256;
  if (lse_through_base_2) n.lse_max_roundings = 5;
  n.chain = denominator_sums;
  return n;
}

Outputs EmulatedKernel::run(const Problem& p, const Inputs& in) const {
  Outputs out{Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim_v}), Tensor({p.batch, p.nheads, p.seqlen_q, 1})};
  const float scale = static_cast<float>(effective_softmax_scale(p)) * (fault == Fault::scale ? 1.01f : 1.0f);
  const float c = scale * 1.4426950408889634f;
  std::uint64_t state = noise;
  const auto exp2_of = [&](float x) {
    // Two units in the last place of the result, rounded result included.
    state += 0x9e3779b97f4a7c15;
    const double off = (static_cast<double>(scramble(state) >> 11) * 0x1p-53 - 0.5) * 2 * 1.5 * 0x1p-23;
    const auto e = static_cast<float>(std::exp2(static_cast<double>(x)) * (x == 0 ? 1 : 1 + off));
    return e < 0x1p-126f ? 0.0f : e;
  };
  const std::int64_t num_tiles = (p.seqlen_k + tile - 1) / tile;
  std::vector<float> s(static_cast<std::size_t>(tile)), weights(s.size()), o(static_cast<std::size_t>(p.headdim_v)),
      l(static_cast<std::size_t>(denominator_sums));

  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.nheads; ++h)
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
        const std::int64_t h_k = h / (p.nheads / p.nheads_k);
        std::int64_t first_key = -1, last_key = -1;
        for (std::int64_t j = 0; j < p.seqlen_k; ++j)
          if (attends(p, b, i, j)) {
            if (first_key < 0) first_key = j;
            last_key = j;
          }
        const auto sees = [&](std::int64_t j) {
          return attends(p, b, i, j) && !(fault == Fault::dropped_key && j == (first_key + last_key) / 2);
        };
        const auto v_at = [&](std::int64_t j, std::int64_t d) {
          if (fault == Fault::swapped_v && (j == first_key || j == last_key)) j = first_key + last_key - j;
          return static_cast<float>(in.v.at(b, j, h_k, d));
        };
        float max = -std::numeric_limits<float>::infinity();
        std::fill(o.begin(), o.end(), 0.0f);
        std::fill(l.begin(), l.end(), 0.0f);
        for (std::int64_t step = 0; step < num_tiles; ++step) {
          const std::int64_t first = (last_tile_first ? num_tiles - 1 - step : step) * tile;
          const std::int64_t count = std::min<std::int64_t>(tile, p.seqlen_k - first);
          float new_max = max;
          for (std::int64_t n = 0; n < count; ++n) {
            if (!sees(first + n)) {
              s[n] = -std::numeric_limits<float>::infinity();
              continue;
            }
            s[n] = accumulate(
                accumulator, 0.0f, p.headdim, [&](std::int64_t d) { return static_cast<float>(in.q.at(b, i, h, d)); },
                [&](std::int64_t d) { return static_cast<float>(in.k.at(b, first + n, h_k, d)); });
            if (fault == Fault::s_in_fp16) s[n] = static_cast<float>(round_to(Dtype::fp16, s[n]));
            if (std::isnan(new_max) || new_max == -std::numeric_limits<float>::infinity() || s[n] * c > new_max * c)
              new_max = s[n];
          }
          if (new_max == -std::numeric_limits<float>::infinity()) continue;  // no key so far
          const bool move = max == -std::numeric_limits<float>::infinity() || !lazy_rescale || (new_max - max) * c > 8;
          if (move && max != new_max) {
            const float rescale = max == -std::numeric_limits<float>::infinity() ? 0 : exp2_of((max - new_max) * c);
            for (float& x : l) x *= rescale;
            for (float& x : o) x *= rescale;
            max = new_max;
          }
          const float shift = max * c;
          for (std::int64_t n = 0; n < count; ++n) {
            weights[n] = sees(first + n) ? exp2_of(std::fma(s[n], c, -shift)) : 0.0f;
            l[(first + n) / 2 % denominator_sums] += weights[n];
            if (dtype != Dtype::fp32) weights[n] = static_cast<float>(round_to(dtype, weights[n]));
            if (fault == Fault::short_p) {
              const auto bits = std::bit_cast<std::uint32_t>(weights[n]);
              const std::uint32_t last = dtype == Dtype::fp16 ? 1u << 13 : 1u << 16;
              if (bits & last) weights[n] = std::bit_cast<float>(bits & (last << 1) ? bits + last : bits - last);
            }
          }
          for (std::int64_t d = 0; d < p.headdim_v; ++d) {
            o[d] = accumulate(
                accumulator, o[d], count, [&](std::int64_t n) { return weights[n]; },
                // A masked key's V may be NaN: kernels zero-fill or never read it.
                [&](std::int64_t n) { return weights[n] == 0 && !sees(first + n) ? 0.0f : v_at(first + n, d); });
            if (fault == Fault::o_in_fp16) o[d] = static_cast<float>(round_to(Dtype::fp16, o[d]));
          }
        }
        float sum = 0;
        for (const float x : l) sum += x;
        const bool none = first_key < 0 || max == -std::numeric_limits<float>::infinity();
        const float inverse = none ? 0.0f : 1.0f / sum;
        for (std::int64_t d = 0; d < p.headdim_v; ++d)
          out.o.at(b, i, h, d) = round_to(output_dtype(p.dtype), o[d] * inverse);
        volatile float scaled_max = lse_through_base_2 ? max * c : max * scale;
        if (lse_through_base_2) scaled_max = scaled_max * 0.6931471805599453f;
        out.lse->at(b, h, i, 0) =
            none ? -std::numeric_limits<double>::infinity() : static_cast<float>(scaled_max + std::log(sum));
      }
  return out;
}

}  // namespace attest
