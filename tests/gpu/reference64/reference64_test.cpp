// The truth on the GPU beside the reference's, element by element, bounds and variances included.
#include "attest/gpu/reference64.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attest/fuzz/generators.h"
#include "attest/gpu/device.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

// Why nothing can run on a GPU here; empty where it can.
std::string no_device() {
  try {
    open_device();
    return "";
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

// Both sums are in float64, in another order. Numbers that cancel are as wrong as what they are made of, hence `scale`.
void expect_same(const char* what, const Tensor& gpu, const Tensor& cpu, double tolerance, double scale,
                 const Case& c) {
  ASSERT_EQ(gpu.extents, cpu.extents) << what << " of " << command_line(c);
  for (std::size_t at = 0; at < cpu.values.size(); ++at) {
    const double a = gpu.values[at], b = cpu.values[at];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const bool close = std::abs(a - b) <= tolerance * (std::abs(b) + scale);
    EXPECT_TRUE(close) << what << " " << at << " is " << a << " where it is " << b << ": " << command_line(c);
    if (!close) return;
  }
}

void expect_same(const Truth& gpu, const Truth& cpu, const Case& c) {
  expect_same("o", gpu.forward.o, cpu.forward.o, 1e-11, 1, c);
  expect_same("lse", gpu.forward.lse, cpu.forward.lse, 1e-12, 1, c);
  // tanh comes back out of its derivative as sqrt(1 - slope), which is off by up to 2e-8 where it is small; it counts
  // times 2^-11 of the cap.
  const double capped = c.problem.softcap * 0.1;
  expect_same("o_bound", gpu.o_bound, cpu.o_bound, 1e-9, 1e-9 + capped, c);
  expect_same("lse_bound", gpu.lse_bound, cpu.lse_bound, 1e-9, capped, c);
  const double loose = c.problem.softcap > 0 ? 1e-3 : 1e-7;
  expect_same("o_variance", gpu.o_variance, cpu.o_variance, loose, 0, c);
  expect_same("lse_variance", gpu.lse_variance, cpu.lse_variance, loose, 0, c);
  expect_same("roundings", gpu.roundings, cpu.roundings, loose, 0, c);
}

TEST(Reference64, EqualsTheReferenceOnGeneratedCases) {
  if (const std::string why = no_device(); !why.empty()) GTEST_SKIP() << why;
  for (std::uint64_t k = 0; k < 300; ++k) {
    const Case c = generate_case(17, k, {64, 1 << 18, 1024});
    const Inputs inputs = make_inputs(c);
    Numerics n = flash_numerics(c.problem.dtype, k % 2 == 0 ? 16 : 64);
    n.num_splits = static_cast<int>(c.num_splits);
    if (k % 5 == 0) n.max_P = 256;
    // Finer than P's: where a score may be off by tens, W = sum p exp(-tau) is all cancellation.
    if (k % 7 == 0) n.u_S = 0x1p-11;
    n.normalises_first = k % 3 == 0;
    const bool statistical = c.inputs == Distribution::normal;
    expect_same(forward_with_budget_on_gpu(c.problem, inputs, n, statistical),
                forward_with_budget(c.problem, inputs, n, statistical), c);
  }
}

TEST(Reference64, EqualsTheReferenceOnALongSequence) {
  if (const std::string why = no_device(); !why.empty()) GTEST_SKIP() << why;
  Case c;
  c.problem.nheads = c.problem.nheads_k = 1;
  c.problem.seqlen_q = c.problem.seqlen_k = 4096;
  c.problem.causal = Causal::bottom_right;
  const Inputs inputs = make_inputs(c);
  const Numerics n = flash_numerics(c.problem.dtype, 64);
  expect_same(forward_with_budget_on_gpu(c.problem, inputs, n, true), forward_with_budget(c.problem, inputs, n, true),
              c);
}

TEST(Reference64, SaysWhyItCannotRun) {
  if (no_device().empty()) GTEST_SKIP() << "there is a GPU here";
  EXPECT_THROW(forward_with_budget_on_gpu({}, {}, {}, false), EnvironmentError);
}

}  // namespace
}  // namespace attest
