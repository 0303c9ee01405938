// The 8-bit formats against a search through all their values, and against the CUDA headers' host conversions where
// these are there.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "attest/reference/rounding.h"
#if __has_include(<cuda_fp8.h>)
#include <cuda_fp8.h>
#define ATTEST_CUDA_FP8 1
#endif

namespace attest {
namespace {

class Fp8Test : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Formats, Fp8Test, testing::Values(Dtype::fp8_e4m3, Dtype::fp8_e5m2),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(Fp8Test, TheFormatsOfTheOcpTable) {
  const bool e4m3 = GetParam() == Dtype::fp8_e4m3;
  const auto value = [](std::uint32_t bits) { return decode(GetParam(), bits); };
  EXPECT_EQ(value(0x01), e4m3 ? 0x1p-9 : 0x1p-16);                // the smallest subnormal
  EXPECT_EQ(value(e4m3 ? 0x08 : 0x04), e4m3 ? 0x1p-6 : 0x1p-14);  // the smallest normal
  EXPECT_EQ(value(e4m3 ? 0x7e : 0x7b), e4m3 ? 448 : 57344);       // the largest
  EXPECT_TRUE(std::isnan(value(0x7f)));
  EXPECT_EQ(std::isinf(value(0x7c)), !e4m3);
  EXPECT_EQ(value(0x80), 0);
  EXPECT_TRUE(std::signbit(value(0x80)));
}

// To nearest, ties to the even pattern, found by looking at every value there is.
std::uint32_t nearest_by_search(Dtype dtype, double x) {
  const double magnitude = std::min(std::abs(x), 1e6);  // beyond the largest, where differences still show
  std::uint32_t best = 0;
  for (std::uint32_t bits = 1; bits < 0x80; ++bits) {
    const double value = decode(dtype, bits);
    if (!std::isfinite(value)) break;
    const double closer = std::abs(value - magnitude) - std::abs(decode(dtype, best) - magnitude);
    if (closer < 0 || (closer == 0 && bits % 2 == 0)) best = bits;
  }
  return best | (std::signbit(x) ? 0x80u : 0u);
}

std::vector<double> values_to_round(Dtype dtype) {
  std::vector<double> all = {0.0, -0.0, 1e300, -1e300, 5e-324, 464, 464.0001, 61440, 0x1p-10, 0x1.8p-10};
  for (std::uint32_t bits = 0; bits < 0x7e; ++bits) {
    const double low = decode(dtype, bits), high = decode(dtype, bits + 1);
    if (!std::isfinite(high)) break;
    const double middle = low + (high - low) / 2;
    for (const double x : {low, middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e300)})
      all.insert(all.end(), {x, -x});
  }
  std::mt19937_64 random(3);
  for (int n = 0; n < 20000; ++n)
    all.push_back(std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 40) - 75));
  return all;
}

TEST_P(Fp8Test, RoundsToTheNearestOfAllValues) {
  for (const double x : values_to_round(GetParam())) {
    const std::uint32_t expected = nearest_by_search(GetParam(), x);
    ASSERT_EQ(encode(GetParam(), x), expected) << x;
    ASSERT_EQ(round_to(GetParam(), x), decode(GetParam(), expected)) << x;
  }
}

#ifdef ATTEST_CUDA_FP8
TEST_P(Fp8Test, EqualsTheCudaHeaders) {
  const auto kind = GetParam() == Dtype::fp8_e4m3 ? __NV_E4M3 : __NV_E5M2;
  for (const double x : values_to_round(GetParam()))
    ASSERT_EQ(encode(GetParam(), x), __nv_cvt_double_to_fp8(x, __NV_SATFINITE, kind)) << x;
  for (const double x : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
    ASSERT_EQ(encode(GetParam(), x), __nv_cvt_double_to_fp8(x, __NV_SATFINITE, kind)) << x;
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    const auto half =
        std::bit_cast<std::uint16_t>(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits), kind));
    const double expected = decode(Dtype::fp16, half), value = decode(GetParam(), bits);
    ASSERT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected))) << bits;
  }
}
#endif

}  // namespace
}  // namespace attest
