#include "attest/problem/problem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "attest/problem/dtype.h"
#include "attest/problem/error.h"
#include "attest/problem/numerics.h"

namespace attest {
namespace {

using Change = std::function<void(Problem&)>;

std::string refusal(const Change& change) {
  Problem p;
  change(p);
  try {
    validate(p);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

struct Limit {
  std::string field;
  std::int64_t Problem::*member;
  std::int64_t low, high;
};

// Both sides of every limit.
TEST(ProblemTest, LimitsOfEveryField) {
  const Limit limits[] = {{"batch", &Problem::batch, 1, 1 << 20},
                          {"seqlen_q", &Problem::seqlen_q, 0, 1 << 26},
                          {"seqlen_k", &Problem::seqlen_k, 0, 1 << 26},
                          {"nheads", &Problem::nheads, 1, 1 << 16},
                          {"headdim", &Problem::headdim, 1, 256},
                          {"headdim_v", &Problem::headdim_v, 1, 256},
                          {"window_left", &Problem::window_left, -1, 1 << 30},
                          {"window_right", &Problem::window_right, -1, 1 << 30}};
  for (const Limit& limit : limits) {
    for (const std::int64_t inside : {limit.low, limit.high})
      EXPECT_EQ(refusal([&](Problem& p) { p.*limit.member = inside; }), "") << limit.field;
    for (const std::int64_t outside : {limit.low - 1, limit.high + 1, INT64_MIN, INT64_MAX}) {
      const std::string text = refusal([&](Problem& p) { p.*limit.member = outside; });
      EXPECT_EQ(text.rfind(limit.field + ": " + std::to_string(outside), 0), 0u) << text;
      EXPECT_NE(text.find(std::to_string(limit.high)), std::string::npos) << text;
    }
  }
}

TEST(ProblemTest, HeadsMustDivide) {
  EXPECT_EQ(refusal([](Problem& p) { p.nheads = 6, p.nheads_k = 3; }), "");
  EXPECT_EQ(refusal([](Problem& p) { p.nheads = 6, p.nheads_k = 4; }), "nheads: 6 is not a multiple of nheads_k = 4");
  EXPECT_EQ(refusal([](Problem& p) { p.nheads = 2, p.nheads_k = 4; }), "nheads: 2 is not a multiple of nheads_k = 4");
  EXPECT_EQ(refusal([](Problem& p) { p.nheads_k = 0; }).rfind("nheads_k: 0", 0), 0u);
}

TEST(ProblemTest, ScaleMustBeFinite) {
  for (const double good : {0.0, -1.0, 0x1p20, -0x1p20, 5e-324})
    EXPECT_EQ(refusal([&](Problem& p) { p.softmax_scale = good; }), "") << good;
  for (const double bad : {std::nextafter(0x1p20, 1e300), -0x1.1p20, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(refusal([&](Problem& p) { p.softmax_scale = bad; }).rfind("softmax_scale: ", 0), 0u) << bad;
}

TEST(ProblemTest, NoTensorOf2To40Elements) {
  const auto sized = [](std::int64_t batch, std::int64_t seqlen, std::int64_t headdim) {
    return refusal([=](Problem& p) { p.batch = batch, p.seqlen_q = seqlen, p.headdim = p.headdim_v = headdim; });
  };
  EXPECT_EQ(sized(1 << 6, 1 << 26, 255), "");
  EXPECT_EQ(sized(1 << 6, 1 << 26, 256).rfind("q: ", 0), 0u);
  EXPECT_EQ(refusal([](Problem& p) {
              p.seqlen_q = 0, p.batch = 1 << 20, p.seqlen_k = 1 << 26, p.nheads = p.nheads_k = 1 << 16, p.headdim = 256;
            }).rfind("k: ", 0),
            0u);  // 2^70: past 64 bits
}

TEST(ProblemTest, ScaleDefaultsToTheRootOfHeaddim) {
  Problem p;
  EXPECT_EQ(effective_softmax_scale(p), 0.125);
  p.softmax_scale = 0;
  EXPECT_EQ(effective_softmax_scale(p), 0);
}

TEST(ProblemTest, NamesReadBack) {
  for (const Dtype dtype : all_dtypes) EXPECT_EQ(dtype_from_string(to_string(dtype)), dtype);
  for (const Causal causal : {Causal::none, Causal::bottom_right, Causal::top_left})
    EXPECT_EQ(causal_from_string(to_string(causal)), causal);
  EXPECT_THROW(dtype_from_string("half"), InvalidInput);
  EXPECT_THROW(causal_from_string(""), InvalidInput);
}

TEST(NumericsTest, FlashRoundsWhereItsTypeDoes) {
  EXPECT_EQ(flash_numerics(Dtype::fp16).u_P, 0x1p-11);
  EXPECT_EQ(flash_numerics(Dtype::bf16).u_P, 0x1p-8);
  EXPECT_EQ(flash_numerics(Dtype::fp32).u_P, 0);
  EXPECT_EQ(flash_numerics(Dtype::fp32).u_out, 0x1p-24);
  EXPECT_EQ(flash_numerics(Dtype::bf16, 64).smallest_tile, 64);
  EXPECT_EQ(flash_numerics(Dtype::bf16).name, "flash bf16");
}

}  // namespace
}  // namespace attest
