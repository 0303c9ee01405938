#include "attest/simulator/tile_math.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "attest/reference/rounding.h"

namespace attest {
namespace {

TEST(TileMath, RoundsAsTheFormatsDo) {
  for (const float x :
       {0.0f, 1.0f, 1.00390625f, 1.01171875f, -3.14159f, 65504.0f, 65520.0f, 1e-8f, 6e-8f, 1e30f, -1e-30f}) {
    float half[8] = {x}, brain[8] = {x};
    tile_math::round(Dtype::fp16, half, 8);
    tile_math::round(Dtype::bf16, brain, 8);
    EXPECT_EQ(half[0], static_cast<float>(Eigen::half(x))) << x;
    EXPECT_EQ(brain[0], static_cast<float>(Eigen::bfloat16(x))) << x;
  }
  float nan[8] = {std::numeric_limits<float>::quiet_NaN()};
  tile_math::round(Dtype::bf16, nan, 8);
  EXPECT_TRUE(std::isnan(nan[0]));
}

// The reference rounds in float64 and knows nothing of this: every value, everything between two, and what saturates.
TEST(TileMath, EightBitConversionsAreTheReferences) {
  for (const Dtype dtype : {Dtype::fp8_e4m3, Dtype::fp8_e5m2}) {
    const auto check = [&](float x) {
      std::uint8_t bits;
      tile_math::store(dtype, &x, 1, &bits);
      float back, rounded[8] = {x};
      tile_math::load(dtype, &bits, 1, &back);
      tile_math::round(dtype, rounded, 8);
      ASSERT_EQ(bits, encode(dtype, x)) << to_string(dtype) << " " << x;
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(back) && std::isnan(rounded[0]));
        return;
      }
      ASSERT_EQ(back, static_cast<float>(decode(dtype, bits))) << to_string(dtype) << " " << x;
      ASSERT_EQ(rounded[0], back) << to_string(dtype) << " " << x;
    };
    for (std::uint32_t bits = 0; bits < 256; ++bits) {
      const auto byte = static_cast<std::uint8_t>(bits);
      float value;
      tile_math::load(dtype, &byte, 1, &value);
      const double exact = decode(dtype, bits);
      ASSERT_TRUE(value == exact || (std::isnan(value) && std::isnan(exact))) << bits;
    }
    for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 0x1fffb)
      check(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    for (std::uint32_t bits = 0; bits < 0x7e; ++bits) {
      const auto low = static_cast<float>(decode(dtype, bits)), high = static_cast<float>(decode(dtype, bits + 1));
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const float middle = low + (high - low) / 2;
      for (const float x : {middle, std::nextafter(middle, low), std::nextafter(middle, high)}) check(x), check(-x);
    }
  }
}

TEST(TileMath, LoadsAndStoresRaggedRows) {
  for (const Dtype dtype : all_dtypes)
    for (int n = 0; n <= 19; ++n) {
      std::vector<float> x(static_cast<std::size_t>(n) + 1, 77.0f), back = x;
      for (int i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i % 13 - 5);
      std::vector<std::uint8_t> raw(static_cast<std::size_t>(n * bytes_of(dtype)) + 4, 0xab);
      tile_math::store(dtype, x.data(), n, raw.data());
      EXPECT_EQ(raw[static_cast<std::size_t>(n * bytes_of(dtype))], 0xab) << "wrote past the row";
      tile_math::load(dtype, raw.data(), n, back.data());
      EXPECT_EQ(back, x) << to_string(dtype) << " n " << n;
    }
}

TEST(TileMath, ExponentialsAreWithinTwoUlpAndKeepNaN) {
  double worst = 0;
  for (float y = -126.0f; y <= 8.0f; y += 0.00137f) {
    float x[8] = {y, y, y, y, y, y, y, y}, sums[8] = {};
    tile_math::exponentials(x, 8, 1.0f, 0.0f, sums);
    const double exact = std::exp2(static_cast<double>(y));
    worst = std::max(worst, std::abs(x[0] - exact) / exact);
    EXPECT_EQ(sums[3], x[3]);
  }
  EXPECT_LT(worst, 2 * 0x1p-23);
  const float inf = std::numeric_limits<float>::infinity();
  float special[8] = {-inf, -127.0f, 0.0f, 128.0f, inf, std::numeric_limits<float>::quiet_NaN(), 1.0f, -126.0f},
        sums[8] = {};
  tile_math::exponentials(special, 8, 1.0f, 0.0f, sums);
  EXPECT_EQ(special[0], 0.0f);
  EXPECT_EQ(special[1], 0.0f) << "flushed";
  EXPECT_EQ(special[2], 1.0f);
  EXPECT_EQ(special[3], inf);
  EXPECT_EQ(special[4], inf);
  EXPECT_TRUE(std::isnan(special[5]));
  EXPECT_EQ(special[6], 2.0f);
  EXPECT_EQ(special[7], 0x1p-126f);
}

TEST(TileMath, MaxPassesOverNaN) {
  float x[8] = {-3, std::numeric_limits<float>::quiet_NaN(), 2, -1, 0, 1, 1, 1};
  EXPECT_EQ(tile_math::max(x, 8, -std::numeric_limits<float>::infinity()), 2.0f);
  EXPECT_EQ(tile_math::max(x, 8, 5.0f), 5.0f);
}

}  // namespace
}  // namespace attest
