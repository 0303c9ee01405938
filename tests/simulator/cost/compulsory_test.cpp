#include "attest/simulator/compulsory.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "attest/reference/attends.h"

namespace attest {
namespace {

Problem random_problem(std::mt19937& random) {
  const auto in = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  Problem p;
  p.batch = in(1, 2);
  p.nheads_k = in(1, 2);
  p.nheads = p.nheads_k * in(1, 3);
  p.seqlen_q = in(0, 40);
  p.seqlen_k = in(0, 40);
  p.headdim = in(1, 8);
  p.headdim_v = in(1, 8);
  p.dtype = in(0, 1) == 0 ? Dtype::fp16 : Dtype::fp32;
  p.causal = static_cast<Causal>(in(0, 2));
  if (in(0, 1) == 1) p.window_left = in(-1, 45);
  if (in(0, 1) == 1) p.window_right = in(-1, 45);
  return p;
}

TEST(Compulsory, EqualsACountOfWhatTheOracleAttendsTo) {
  std::mt19937 random(7);
  for (int n = 0; n < 2000; ++n) {
    const Problem p = random_problem(random);
    std::int64_t pairs = 0;
    std::set<std::int64_t> rows, keys;
    for (std::int64_t i = 0; i < p.seqlen_q; ++i)
      for (std::int64_t j = 0; j < p.seqlen_k; ++j)
        if (attends(p, 0, i, j)) ++pairs, rows.insert(i), keys.insert(j);
    const std::int64_t bytes = bytes_of(p.dtype);
    const CompulsoryBytes c = compulsory_bytes(p);
    const auto seen_rows = static_cast<std::int64_t>(rows.size()), seen_keys = static_cast<std::int64_t>(keys.size());
    ASSERT_EQ(c.read,
              bytes * p.batch * (p.nheads * seen_rows * p.headdim + p.nheads_k * seen_keys * (p.headdim + p.headdim_v)))
        << "case " << n;
    ASSERT_EQ(c.write, p.batch * p.nheads * p.seqlen_q * (p.headdim_v * bytes + 4));
    ASSERT_EQ(visible_pairs(p), static_cast<double>(p.batch * p.nheads * pairs)) << "case " << n;
  }
}

TEST(Compulsory, TheUsualFlopCounts) {
  Problem p;
  p.batch = 1, p.nheads = p.nheads_k = 8, p.seqlen_q = p.seqlen_k = 1664, p.headdim = p.headdim_v = 32;
  EXPECT_DOUBLE_EQ(flops_of_pairs(p, visible_pairs(p)), 4.0 * 8 * 1664 * 1664 * 32);
  p.causal = Causal::bottom_right;
  EXPECT_DOUBLE_EQ(flops_of_pairs(p, visible_pairs(p)), 4.0 * 8 * (1664.0 * 1665 / 2) * 32);
}

}  // namespace
}  // namespace attest
