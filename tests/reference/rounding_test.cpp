#include "attest/reference/rounding.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace attest {
namespace {

class Round16Test : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Formats, Round16Test, testing::Values(Dtype::fp16, Dtype::bf16),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(Round16Test, EveryPatternRoundTrips) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const double value = decode(GetParam(), bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(decode(GetParam(), encode(GetParam(), value)))) << bits;
      ASSERT_TRUE(std::isnan(round_to(GetParam(), value))) << bits;
      continue;
    }
    ASSERT_EQ(encode(GetParam(), value), bits);
    ASSERT_EQ(round_to(GetParam(), value), value) << bits;
    ASSERT_EQ(std::signbit(round_to(GetParam(), value)), std::signbit(value)) << bits;
  }
}

// Between every two neighbours: the midpoint goes to the even one, and one float64 step beside it to the nearer one.
// A rounding through fp32 first fails here.
TEST_P(Round16Test, MidpointsAndTheirNeighbours) {
  for (std::uint32_t bits = 0; bits < 0x7fff; ++bits) {
    const double low = decode(GetParam(), bits), high = decode(GetParam(), bits + 1);
    if (!std::isfinite(low)) break;
    // Past the largest number the next one would be a power of two: that half way is where Inf begins.
    const double next = std::isfinite(high) ? high : low + (low - decode(GetParam(), bits - 1));
    const double middle = low + (next - low) / 2;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    for (const double sign : {1.0, -1.0}) {
      const std::uint32_t sign_bit = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(encode(GetParam(), sign * middle), even | sign_bit) << bits;
      ASSERT_EQ(encode(GetParam(), sign * std::nextafter(middle, 0)), bits | sign_bit) << bits;
      ASSERT_EQ(encode(GetParam(), sign * std::nextafter(middle, 1e300)), (bits + 1) | sign_bit) << bits;
    }
  }
}

TEST_P(Round16Test, AgreesWithEigenOnFloats) {
  std::mt19937 random(1);
  for (int n = 0; n < 200000; ++n) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) continue;
    const float eigen =
        GetParam() == Dtype::fp16 ? static_cast<float>(Eigen::half(value)) : static_cast<float>(Eigen::bfloat16(value));
    ASSERT_EQ(round_to(GetParam(), value), eigen) << value;
  }
}

TEST(RoundingTest, ExtremesOfFloat64) {
  for (const Dtype dtype : all_dtypes) {
    const double overflown = dtype == Dtype::fp8_e4m3   ? 448
                             : dtype == Dtype::fp8_e5m2 ? 57344
                                                        : std::numeric_limits<double>::infinity();
    EXPECT_EQ(round_to(dtype, 1e300), overflown);
    EXPECT_EQ(round_to(dtype, -std::numeric_limits<double>::infinity()), -overflown);
    EXPECT_EQ(round_to(dtype, 5e-324), 0);
    EXPECT_TRUE(std::signbit(round_to(dtype, -5e-324)));
    EXPECT_TRUE(std::isnan(round_to(dtype, std::numeric_limits<double>::quiet_NaN())));
  }
  EXPECT_EQ(round_to(Dtype::fp16, 65519.999), 65504);
  EXPECT_TRUE(std::isinf(round_to(Dtype::fp16, 65520)));
}

TEST(RoundingTest, RowsAreTheirElements) {
  std::mt19937_64 random(4);
  for (const Dtype dtype : all_dtypes) {
    constexpr std::int64_t count = 4099;  // no multiple of a vector
    std::vector<double> values(count), back(count);
    for (double& x : values)
      x = std::ldexp(static_cast<double>(random() >> 11) - 0x1p52, static_cast<int>(random() % 90) - 110);
    values[7] = std::numeric_limits<double>::quiet_NaN();
    values[8] = -std::numeric_limits<double>::infinity();
    const auto size = static_cast<std::size_t>(bytes_of(dtype));
    std::vector<unsigned char> bits(count * size + 1, 0xab);
    encode_row(dtype, values.data(), count, bits.data());
    decode_row(dtype, bits.data(), count, back.data());
    EXPECT_EQ(bits.back(), 0xab);
    for (std::size_t n = 0; n < count; ++n) {
      std::uint32_t word = 0;
      std::memcpy(&word, bits.data() + n * size, size);
      const double rounded = round_to(dtype, values[n]);
      if (std::isnan(rounded)) {
        ASSERT_TRUE(std::isnan(back[n]) && std::isnan(decode(dtype, word)));
      } else {
        ASSERT_EQ(word, encode(dtype, values[n])) << values[n];
        ASSERT_EQ(back[n], rounded) << values[n];
      }
    }
  }
}

TEST(RoundingTest, Fp32BitsComeBack) {
  std::mt19937 random(2);
  for (int n = 0; n < 100000; ++n) {
    const auto bits = static_cast<std::uint32_t>(random());
    if (std::isnan(std::bit_cast<float>(bits))) continue;
    ASSERT_EQ(encode(Dtype::fp32, decode(Dtype::fp32, bits)), bits);
  }
}

}  // namespace
}  // namespace attest
