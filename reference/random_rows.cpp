#include "random_rows.h"

#include <array>
#include <cmath>

#include "round_format.h"

namespace attest {
namespace {

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

}  // namespace

std::uint64_t row_key(std::uint64_t seed, Stream stream, std::int64_t b, std::int64_t s, std::int64_t h) {
  std::uint64_t key = mix(seed ^ (static_cast<std::uint64_t>(stream) << 56));
  key = mix(key ^ static_cast<std::uint64_t>(b));
  key = mix(key ^ static_cast<std::uint64_t>(s));
  return mix(key ^ static_cast<std::uint64_t>(h));
}

void fill_normal_row(double* row, std::int64_t dim, std::uint64_t key, double factor, Dtype dtype) {
  static const std::array<float, cells + 1> quantiles = make_quantiles();
  switch (dtype) {
    case Dtype::fp16:
      return fill_row(row, dim, key, factor, quantiles.data(), [](double x) { return round_to_format<Fp16>(x); });
    case Dtype::bf16:
      return fill_row(row, dim, key, factor, quantiles.data(), [](double x) { return round_to_format<Bf16>(x); });
    case Dtype::fp8_e4m3:
      return fill_row(row, dim, key, factor, quantiles.data(), [](double x) { return round_to_fp8<Fp8E4m3>(x); });
    case Dtype::fp8_e5m2:
      return fill_row(row, dim, key, factor, quantiles.data(), [](double x) { return round_to_fp8<Fp8E5m2>(x); });
    case Dtype::fp32:
      return fill_row(row, dim, key, factor, quantiles.data(),
                      [](double x) { return static_cast<double>(static_cast<float>(x)); });
  }
}

}  // namespace attest
