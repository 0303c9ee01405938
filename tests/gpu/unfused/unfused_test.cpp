// What the baseline refuses, by the field's name and before a launch: needs no GPU.
#include "attest/gpu/unfused.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

std::string refusal(const Case& c) {
  DeviceLimits device;
  device.memory_bytes = std::int64_t{128} << 30;
  return make_unfused()->unsupported(c, device).value_or("");
}

TEST(UnfusedRefusals, NameTheFieldOnItsFarSideAlone) {
  Case c;
  Problem& p = c.problem;
  EXPECT_EQ(refusal(c), "");
  p.dtype = Dtype::fp8_e4m3;
  EXPECT_EQ(refusal(c), "dtype: fp8_e4m3 is none of fp16, bf16, fp32");
  p.dtype = Dtype::bf16;
  c.num_splits = 2;
  EXPECT_EQ(refusal(c), "num_splits: 2 is above 1; S lies in memory whole");
  c.num_splits = 1;
  // 64 GiB of S is half of the memory, and 8 keys more are too many.
  p.nheads = p.nheads_k = 8, p.seqlen_q = p.seqlen_k = 65'536;
  EXPECT_EQ(refusal(c), "");
  p.seqlen_k += 1;
  EXPECT_EQ(refusal(c), "seqlen_k: 65537 makes S 68.7 GB, above half of the device's memory, 68.7 GB");
  p.seqlen_q = p.seqlen_k = 1, p.nheads = p.nheads_k = 64, p.batch = 1 << 22;
  EXPECT_EQ(refusal(c), "");
  p.batch = 1 << 24;
  EXPECT_EQ(refusal(c), "batch: 16777216 makes more blocks than a grid holds");
}

}  // namespace
}  // namespace attest
