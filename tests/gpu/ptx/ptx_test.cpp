// What the instructions do on the device, held to the maps in gpu/plan and to the errors that the PTX ISA states.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "attest/gpu/device.h"
#include "attest/plan/fragment.h"
#include "attest/problem/error.h"
#include "attest/reference/rounding.h"
#include "probes.h"

namespace attest {
namespace {

using test::Function;
using test::PerLane;

class Ptx : public testing::Test {
 protected:
  void SetUp() override {
    try {
      open_device();
    } catch (const EnvironmentError& none) {
      GTEST_SKIP() << none.what();
    }
  }
};

std::uint32_t pair(std::uint32_t low, std::uint32_t high) { return low | high << 16; }

template <class CellOf>
PerLane<2> cells(CellOf cell) {
  PerLane<2> result;
  for (int lane = 0; lane < 32; ++lane) {
    const Cell c = cell(lane);
    result[std::size_t(lane)] = {std::uint32_t(c.row), std::uint32_t(c.chunk)};
  }
  return result;
}

std::vector<std::uint16_t> numbered_tile() {  // element (row, col) of 16 x 16 is 16 * row + col
  std::vector<std::uint16_t> tile(256);
  for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = static_cast<std::uint16_t>(i);
  return tile;
}

TEST_F(Ptx, LdmatrixLoadsTheOperandsThatThePlanSays) {
  const auto tile = numbered_tile();
  const auto at = [&](Element e) { return std::uint32_t(tile[std::size_t(16 * e.row + e.col)]); };
  const auto a = test::run_ldmatrix(tile, cells(a_cell), false);
  const auto b = test::run_ldmatrix(tile, cells(b_cell), false);
  const auto v = test::run_ldmatrix(tile, cells(b_transposed_cell), true);
  for (int lane = 0; lane < 32; ++lane)
    for (int j = 0; j < 4; ++j) {
      const auto l = std::size_t(lane), r = std::size_t(j);
      EXPECT_EQ(a[l][r], pair(at(a_element16(lane, j, 0)), at(a_element16(lane, j, 1)))) << lane << " " << j;
      // registers {0, 1} are B of keys 0 to 7, {2, 3} of keys 8 to 15; a row of the tile is a key
      const Element low = b_element16(lane, j & 1, 0), high = b_element16(lane, j & 1, 1);
      const int keys = 8 * (j >> 1);
      EXPECT_EQ(b[l][r], pair(at({keys + low.col, low.row}), at({keys + high.col, high.row}))) << lane << " " << j;
      // transposed: {0, 1} are B of columns 0 to 7, {2, 3} of columns 8 to 15; a row of the tile is k
      EXPECT_EQ(v[l][r], pair(at({low.row, keys + low.col}), at({high.row, keys + high.col}))) << lane << " " << j;
    }
}

TEST_F(Ptx, MmaMultipliesTheElementsThatThePlanSays) {
  std::mt19937 random(5);
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    double a[16][16], b[16][8], c[16][8];
    const auto draw = [&] { return double(int(random() % 9) - 4); };
    for (auto& row : a)
      for (double& x : row) x = draw();
    for (auto& row : b)
      for (double& x : row) x = draw();
    for (auto& row : c)
      for (double& x : row) x = draw();
    const auto bits = [&](double x) { return encode(dtype, x); };
    PerLane<4> a_regs, c_regs;
    PerLane<2> b_regs;
    for (int lane = 0; lane < 32; ++lane) {
      const auto l = std::size_t(lane);
      for (int j = 0; j < 4; ++j) {
        const Element low = a_element16(lane, j, 0), high = a_element16(lane, j, 1), acc = accumulator(lane, j);
        a_regs[l][std::size_t(j)] = pair(bits(a[low.row][low.col]), bits(a[high.row][high.col]));
        c_regs[l][std::size_t(j)] = std::bit_cast<std::uint32_t>(float(c[acc.row][acc.col]));
      }
      for (int j = 0; j < 2; ++j) {
        const Element low = b_element16(lane, j, 0), high = b_element16(lane, j, 1);
        b_regs[l][std::size_t(j)] = pair(bits(b[low.row][low.col]), bits(b[high.row][high.col]));
      }
    }
    const auto d = test::run_mma(dtype, a_regs, b_regs, c_regs);
    for (int lane = 0; lane < 32; ++lane)
      for (int e = 0; e < 4; ++e) {
        const Element at = accumulator(lane, e);
        double sum = c[at.row][at.col];
        for (int k = 0; k < 16; ++k) sum += a[at.row][k] * b[k][at.col];
        EXPECT_EQ(std::bit_cast<float>(d[std::size_t(lane)][std::size_t(e)]), sum) << at.row << ", " << at.col;
      }
  }
}

TEST_F(Ptx, ExponentialsStayWithinTheirErrorAndFlush) {
  std::vector<float> x;
  for (int i = 0; i < 20000; ++i) x.push_back(-126.0f + 0.0067f * float(i));
  const auto y = test::run_function(Function::exp2, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp2(double(x[i]));
    ASSERT_NEAR(std::bit_cast<float>(y[i]), exact, 2.5 * 0x1p-23 * exact) << x[i];
  }
  const float inf = std::numeric_limits<float>::infinity();
  const auto edges = test::run_function(Function::exp2, {-inf, -127.0f, inf, 0.0f, std::nanf("")});
  EXPECT_EQ(std::bit_cast<float>(edges[0]), 0);
  EXPECT_EQ(std::bit_cast<float>(edges[1]), 0);
  EXPECT_EQ(std::bit_cast<float>(edges[2]), inf);
  EXPECT_EQ(std::bit_cast<float>(edges[3]), 1);
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(edges[4])));
}

TEST_F(Ptx, HyperbolicTangentsStayWithinTheirError) {
  std::vector<float> x;
  for (int i = -8000; i <= 8000; ++i) x.push_back(0.0013f * float(i));
  const auto y = test::run_function(Function::tanh, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::tanh(double(x[i]));
    ASSERT_NEAR(std::bit_cast<float>(y[i]), exact, 0x1p-11 * std::abs(exact)) << x[i];
  }
}

TEST_F(Ptx, PackingRoundsToNearestEven) {
  std::mt19937 random(11);
  std::vector<float> x = {0.0f, -0.0f, 65504.0f, 65520.0f, 1e-8f, 6e-8f, std::numeric_limits<float>::infinity()};
  while (x.size() < 20000) {
    const auto y = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(y)) x.push_back(y);
  }
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    const auto y = test::run_function(dtype == Dtype::fp16 ? Function::pack_fp16 : Function::pack_bf16, x);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], pair(encode(dtype, x[i]), encode(dtype, 1.0))) << x[i];
  }
}

TEST_F(Ptx, QuadsReduceOverTheFourLanesOfARow) {
  std::vector<float> x(32);
  for (std::size_t i = 0; i < 32; ++i) x[i] = float(i * 37 % 64);
  x[5] = std::nanf("");
  const auto max = test::run_function(Function::quad_max, x);
  const auto sum = test::run_function(Function::quad_sum, x);
  for (int lane = 0; lane < 32; ++lane) {
    float largest = -1, total = 0;
    for (int other = 0; other < 32; ++other)
      if (accumulator(other, 0).row == accumulator(lane, 0).row) {
        largest = std::fmax(largest, x[std::size_t(other)]);
        total += x[std::size_t(other)];
      }
    EXPECT_EQ(std::bit_cast<float>(max[std::size_t(lane)]), largest);
    const float got = std::bit_cast<float>(sum[std::size_t(lane)]);
    EXPECT_TRUE(std::isnan(total) ? std::isnan(got) : got == total) << lane;
  }
}

TEST_F(Ptx, CopiesMoveTheirBytesOrZeros) {
  std::vector<std::uint8_t> from(512);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 7 + 1);
  for (const int bytes : {4, 8, 16})
    for (const bool zeros : {false, true}) {
      const auto got = test::run_copy(bytes, zeros, from);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const bool copied = int(i % 16) < bytes, zero = zeros && i / 16 % 2 == 1;
        ASSERT_EQ(int(got[i]), copied ? (zero ? 0 : from[i]) : 0xee) << bytes << " bytes, byte " << i;
      }
    }
}

TEST_F(Ptx, CopiesThatAreCalledOffTouchNothing) {
  std::vector<std::uint8_t> from(512);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 11 + 2);
  for (const bool through_registers : {false, true})
    for (const bool some_stay : {false, true})
      for (const bool zeros : {false, true}) {
        const auto got = test::run_copy_if(through_registers, some_stay, zeros, from);
        for (std::size_t i = 0; i < got.size(); ++i) {
          const std::size_t lane = i / 16;
          const bool stays = some_stay && lane % 3 == 0, zero = zeros && lane % 2 == 1;
          ASSERT_EQ(int(got[i]), stays  ? 0xee
                                 : zero ? 0
                                        : from[i])
              << (through_registers ? "through registers" : "asynchronous") << ", byte " << i;
        }
      }
}

TEST_F(Ptx, StoresMoveTheirBytesWhereTheyMay) {
  std::vector<std::uint8_t> from(512);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 5 + 3);
  for (const int bytes : {2, 4, 8, 16}) {
    const auto got = test::run_store(bytes, from);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(int(got[i]), int(i % 16) < bytes && i / 16 % 2 == 0 ? from[i] : 0xee) << bytes << " bytes, byte " << i;
  }
}

}  // namespace
}  // namespace attest
