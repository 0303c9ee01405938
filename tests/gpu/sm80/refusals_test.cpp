// What the sm_80 forward refuses, by the field's name and before a launch: needs no GPU.
#include <gtest/gtest.h>

#include "attest/sm80/sm80_forward.h"

namespace attest {
namespace {

Case a_case() {
  Case c;
  Problem& p = c.problem;
  p.seqlen_q = p.seqlen_k = 64, p.headdim = p.headdim_v = 128, p.dtype = Dtype::bf16;
  return c;
}

DeviceLimits a_device() {
  DeviceLimits device;
  device.smem_bytes_per_block = 96 << 10;  // what the tile of head dimension 128 takes
  return device;
}

std::string refusal(const Case& c, const DeviceLimits& device = a_device()) {
  return make_sm80_forward()->unsupported(c, device).value_or("");
}

TEST(Sm80Refusals, NameTheFieldOnItsFarSideAlone) {
  EXPECT_EQ(refusal(a_case()), "");
  Case c = a_case();
  c.problem.dtype = Dtype::fp32;
  EXPECT_EQ(refusal(c), "dtype=fp32 is neither fp16 nor bf16");
  c = a_case(), c.backward = true;
  EXPECT_EQ(refusal(c), "backward: the sm80 kernel computes O and LSE only");
  c = a_case(), c.problem.nheads = c.problem.nheads_k = 65'535;
  EXPECT_EQ(refusal(c), "");
  c.problem.nheads = c.problem.nheads_k = 65'536;
  EXPECT_EQ(refusal(c), "nheads=65536 is above a grid's 65535");
  c = a_case(), c.problem.batch = 65'535;
  EXPECT_EQ(refusal(c), "");
  c.problem.batch = 65'536;
  EXPECT_EQ(refusal(c), "batch=65536 is above a grid's 65535");
  DeviceLimits small = a_device();
  --small.smem_bytes_per_block;
  EXPECT_EQ(refusal(a_case(), small),
            "headdim=128 takes 98304 bytes of shared memory a block, above the device's 98303");
}

// So what is asked of a device is enough for whichever kernel is launched.
TEST(Sm80Refusals, TheGeneralKernelsTilesAreTheLarger) {
  Problem p = a_case().problem;
  for (p.seqlen_q = 1; p.seqlen_q <= 64; p.seqlen_q += 63)
    for (p.headdim = 1; p.headdim <= 256; ++p.headdim)
      for (const std::int64_t headdim_v : {p.headdim, std::int64_t{64}, std::int64_t{128}, std::int64_t{256}}) {
        p.headdim_v = headdim_v;
        ASSERT_LE(sm80_plan(sm80_tile(p, Sm80Kind::fast)).smem_bytes(),
                  sm80_plan(sm80_tile(p, Sm80Kind::general)).smem_bytes())
            << p.headdim << "/" << headdim_v;
      }
}

}  // namespace
}  // namespace attest
