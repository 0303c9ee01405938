// What the launch chooses is what predictions are of: needs no GPU.
#include "attest/sm80/params.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "attest/plan/ablation_plans.h"
#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "attest/sm80/ablation.h"
#include "attest/sm80/sm80_forward.h"

namespace attest {
namespace {

TensorRef tensor(const Case& c, std::int64_t seqlen, std::int64_t heads, std::int64_t dim) {
  TensorRef t = strides_of(c.layout, seqlen, heads, dim);
  t.data = reinterpret_cast<void*>(std::uintptr_t{1} << 30 | static_cast<std::uintptr_t>(2 * c.layout.base_offset));
  return t;
}

sm80::ForwardParams params_of(const Case& c) {
  static constexpr std::int32_t table = 0;
  const Problem& p = c.problem;
  ForwardArgs args;
  args.q = tensor(c, p.seqlen_q, p.nheads, p.headdim), args.k = tensor(c, p.seqlen_k, p.nheads_k, p.headdim);
  args.v = tensor(c, p.seqlen_k, p.nheads_k, p.headdim_v), args.o = tensor(c, p.seqlen_q, p.nheads, p.headdim_v);
  args.page_size = c.layout.page_size;
  if (args.page_size > 0) args.page_table = &table;
  args.num_documents = static_cast<std::int64_t>(p.documents.size());
  return sm80::make_params(c, args, nullptr);
}

Sm80Choice launched(const Case& c) { return sm80::choice_of(params_of(c)); }

Case d128_case() {
  Case c;
  Problem& p = c.problem;
  p.seqlen_q = p.seqlen_k = 256, p.headdim = p.headdim_v = 128, p.dtype = Dtype::bf16;
  return c;
}

TEST(Sm80Params, LaunchTheTileAndTheKindThatPredictionsAreOf) {
  for (const int headdim : {8, 40, 64, 72, 96, 100, 128, 160, 192, 200, 256})
    for (const int headdim_v : {headdim, 128})
      for (const int queries : {1, 8, 300})
        for (const int group : {1, 4})
          for (const int base_offset : {0, 1, 4, 8})
            for (const int gap : {0, 4, 8})
              for (const int page_size : {0, 16})
                for (const int feature : {0, 1, 2, 3}) {
                  Case c;
                  Problem& p = c.problem;
                  p.batch = 2, p.nheads = 2 * group, p.nheads_k = 2, p.seqlen_q = queries, p.seqlen_k = 320;
                  p.headdim = headdim, p.headdim_v = headdim_v, p.dtype = Dtype::bf16;
                  if (feature == 1) p.softcap = 30;
                  if (feature == 2) p.prefix = 10;
                  if (feature == 3) p.causal = Causal::bottom_right, p.window_left = 100;
                  c.layout.base_offset = base_offset, c.layout.row_gap = gap, c.layout.page_size = page_size;
                  const Sm80Choice plan = sm80_choice(c), launch = launched(c);
                  const std::string what =
                      fmt::format("headdim {}/{}, {} queries, group {}, offset {}, gap {}, pages of {}, feature {}",
                                  headdim, headdim_v, queries, group, base_offset, gap, page_size, feature);
                  ASSERT_EQ(plan.tile, launch.tile) << what;
                  ASSERT_EQ(plan.kind, launch.kind) << what;
                  ASSERT_TRUE(sm80::has_kernel(launch.tile, launch.kind)) << what;
                }
}

// So few that two cores compile them in minutes; combine() is one in each dtype too.
TEST(Sm80Kernels, AreAtMost24) {
  int kernels = 1;
  for (const Sm80Tile tile : all_sm80_tiles)
    for (const Sm80Kind kind : {Sm80Kind::fast, Sm80Kind::general}) kernels += sm80::has_kernel(tile, kind);
  EXPECT_LE(2 * kernels, 24);
}

// A tile whose rows lie 2^31 bytes apart from first to last and more takes the general kernel, in predictions too.
TEST(Sm80Params, AWideTileIsNotTheFastKernels) {
  Case c = d128_case();
  c.layout.row_gap = (std::int64_t{1} << 23) - 128 - 8;  // times 128 rows of 2 bytes: just below
  EXPECT_EQ(launched(c).kind, Sm80Kind::fast);
  EXPECT_TRUE(has_ablations(c));
  c.layout.row_gap += 8;
  EXPECT_EQ(launched(c).kind, Sm80Kind::general);
  EXPECT_FALSE(has_ablations(c));
}

TEST(Sm80Ablation, LaunchRefusesWhatItsKernelIsNotFor) {
  const auto cause = [](const Case& c, Sm80Ablation ablation) -> std::string {
    try {
      sm80::launch_ablation(c, params_of(c), ablation, nullptr);
    } catch (const InvalidInput& refused) {
      return refused.what();
    }
    return "launched";
  };
  Case c = d128_case();
  c.problem.softcap = 30;
  EXPECT_EQ(cause(c, Sm80Ablation::spill), fmt::format("kernel: 'sm80-spill' {}", ablation_limit));
  c = d128_case(), c.problem.headdim = 96, c.problem.headdim_v = 96;
  EXPECT_EQ(cause(c, Sm80Ablation::no_skip), fmt::format("kernel: 'sm80-no-skip' {}", ablation_limit));
  c = d128_case(), c.layout.base_offset = 1;
  EXPECT_EQ(cause(c, Sm80Ablation::no_swizzle), fmt::format("kernel: 'sm80-no-swizzle' {}", ablation_limit));
  c = d128_case(), c.problem.dtype = Dtype::fp16;
  EXPECT_EQ(cause(c, Sm80Ablation::sync_copies), "dtype: fp16 is not an ablation's bf16");
}

}  // namespace
}  // namespace attest
