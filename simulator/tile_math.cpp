#include "attest/simulator/tile_math.h"

#include <immintrin.h>

#include <Eigen/Core>
#include <cmath>
#include <cstring>

#include "fp8.h"

namespace attest::tile_math {
namespace {

using Matrix =
    Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0, Eigen::OuterStride<>>;
using ConstMatrix =
    Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0, Eigen::OuterStride<>>;

__m256i bf16_of(__m256 x) {  // round to nearest even; NaN stays NaN
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc00000), nan), 16);
}

__m256 load8(Dtype dtype, const std::uint8_t* from) {
  if (dtype == Dtype::fp32) return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  if (dtype == Dtype::fp16) return _mm256_cvtph_ps(half);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

void store8(Dtype dtype, __m256 x, std::uint8_t* to) {
  if (dtype == Dtype::fp32) return _mm256_storeu_ps(reinterpret_cast<float*>(to), x);
  __m128i half;
  if (dtype == Dtype::fp16) {
    half = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  } else {
    const __m256i wide = bf16_of(x);
    half = _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
}

const std::array<float, 256>& values_of(Dtype dtype) {
  static const std::array<float, 256> e4m3 = fp8_values(Dtype::fp8_e4m3), e5m2 = fp8_values(Dtype::fp8_e5m2);
  return dtype == Dtype::fp8_e4m3 ? e4m3 : e5m2;
}

}  // namespace

void load(Dtype dtype, const void* from, int n, float* to) {
  const auto* bytes = static_cast<const std::uint8_t*>(from);
  if (is_fp8(dtype)) {
    const std::array<float, 256>& values = values_of(dtype);
    for (int i = 0; i < n; ++i) to[i] = values[bytes[i]];
    return;
  }
  const auto size = static_cast<std::size_t>(bytes_of(dtype));
  int i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(to + i, load8(dtype, bytes + static_cast<std::size_t>(i) * size));
  if (i == n) return;
  alignas(32) std::uint8_t tail[32] = {};
  alignas(32) float wide[8];
  std::memcpy(tail, bytes + static_cast<std::size_t>(i) * size, static_cast<std::size_t>(n - i) * size);
  _mm256_store_ps(wide, load8(dtype, tail));
  std::memcpy(to + i, wide, static_cast<std::size_t>(n - i) * sizeof(float));
}

void store(Dtype dtype, const float* from, int n, void* to) {
  auto* bytes = static_cast<std::uint8_t*>(to);
  if (is_fp8(dtype)) {
    const Fp8Format& format = fp8_format(dtype);
    for (int i = 0; i < n; ++i) bytes[i] = encode_fp8(format, round_fp8(format, from[i]));
    return;
  }
  const auto size = static_cast<std::size_t>(bytes_of(dtype));
  int i = 0;
  for (; i + 8 <= n; i += 8) store8(dtype, _mm256_loadu_ps(from + i), bytes + static_cast<std::size_t>(i) * size);
  if (i == n) return;
  alignas(32) float wide[8] = {};
  alignas(32) std::uint8_t tail[32];
  std::memcpy(wide, from + i, static_cast<std::size_t>(n - i) * sizeof(float));
  store8(dtype, _mm256_load_ps(wide), tail);
  std::memcpy(bytes + static_cast<std::size_t>(i) * size, tail, static_cast<std::size_t>(n - i) * size);
}

void round(Dtype dtype, float* x, int n) {
  if (dtype == Dtype::fp32) return;
  if (is_fp8(dtype)) {
    const Fp8Format& format = fp8_format(dtype);
    for (int i = 0; i < n; ++i) x[i] = round_fp8(format, x[i]);
    return;
  }
  alignas(32) std::uint8_t bits[16];
  for (int i = 0; i < n; i += 8) {
    store8(dtype, _mm256_loadu_ps(x + i), bits);
    _mm256_storeu_ps(x + i, load8(dtype, bits));
  }
}

float max(const float* x, int n, float start) {
  __m256 best = _mm256_set1_ps(start);
  for (int i = 0; i < n; i += 8) best = _mm256_max_ps(_mm256_loadu_ps(x + i), best);  // NaN in x: keeps best
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, best);
  for (int i = 1; i < 8; ++i) lanes[0] = lanes[i] > lanes[0] ? lanes[i] : lanes[0];
  return lanes[0];
}

void exponentials(float* x, int n, float scale, float shift, float* partial_sums) {
  // 2^y = 2^round(y) * 2^f with |f| <= 1/2; the series of 2^f to the 7th power is exact to 2^-27.
  const __m256 c[] = {_mm256_set1_ps(1.0f),           _mm256_set1_ps(0.69314718056f), _mm256_set1_ps(0.24022650696f),
                      _mm256_set1_ps(0.05550410866f), _mm256_set1_ps(0.00961812911f), _mm256_set1_ps(0.00133335581f),
                      _mm256_set1_ps(1.54035304e-4f), _mm256_set1_ps(1.52527338e-5f)};
  const __m256 scale8 = _mm256_set1_ps(scale), shift8 = _mm256_set1_ps(-shift);
  __m256 sums = _mm256_loadu_ps(partial_sums);
  for (int i = 0; i < n; i += 8) {
    const __m256 y = _mm256_fmadd_ps(_mm256_loadu_ps(x + i), scale8, shift8);
    const __m256 low = _mm256_cmp_ps(y, _mm256_set1_ps(-126.0f), _CMP_LT_OQ);
    const __m256 clamped = _mm256_min_ps(_mm256_set1_ps(128.0f), _mm256_max_ps(_mm256_set1_ps(-126.0f), y));  // NaN: y
    const __m256 whole = _mm256_round_ps(clamped, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256 f = _mm256_sub_ps(clamped, whole);
    __m256 p = c[7];
    for (int k = 6; k >= 0; --k) p = _mm256_fmadd_ps(p, f, c[k]);
    const __m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127)), 23);
    __m256 e = _mm256_mul_ps(p, _mm256_castsi256_ps(exponent));
    e = _mm256_blendv_ps(e, y, _mm256_cmp_ps(y, y, _CMP_UNORD_Q));
    e = _mm256_andnot_ps(low, e);
    _mm256_storeu_ps(x + i, e);
    sums = _mm256_add_ps(sums, e);
  }
  _mm256_storeu_ps(partial_sums, sums);
}

void multiply_transposed(const float* q, int q_stride, const float* k, int k_stride, int rows, int n, int d, float* s,
                         int s_stride) {
  Matrix(s, rows, n, Eigen::OuterStride<>(s_stride)).noalias() =
      ConstMatrix(q, rows, d, Eigen::OuterStride<>(q_stride)) *
      ConstMatrix(k, n, d, Eigen::OuterStride<>(k_stride)).transpose();
}

void multiply_add(const float* p, int p_stride, const float* v, int v_stride, int rows, int n, int d, float* o,
                  int o_stride) {
  Matrix(o, rows, d, Eigen::OuterStride<>(o_stride)).noalias() +=
      ConstMatrix(p, rows, n, Eigen::OuterStride<>(p_stride)) * ConstMatrix(v, n, d, Eigen::OuterStride<>(v_stride));
}

void add_transposed_multiple(const float* p, int p_stride, const float* x, int x_stride, int rows, int n, int d,
                             float* o, int o_stride) {
  Matrix(o, n, d, Eigen::OuterStride<>(o_stride)).noalias() +=
      ConstMatrix(p, rows, n, Eigen::OuterStride<>(p_stride)).transpose() *
      ConstMatrix(x, rows, d, Eigen::OuterStride<>(x_stride));
}

}  // namespace attest::tile_math
