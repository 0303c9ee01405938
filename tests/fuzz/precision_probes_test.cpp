// What accumulator, weights and lookup see with certainty, at every number of keys and under a causal mask.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "attest/cpu/mutants.h"
#include "attest/fuzz/properties.h"

namespace attest {
namespace {

struct Sight {
  std::string_view property, mutant;
  Dtype dtype;
};

Verdict judge_cpu(std::string_view property, Kernel& kernel, const Case& c) {
  ForwardBuffers buffers;
  Trial trial(kernel, buffers, c);
  return judge(property_named(property), trial);
}

Case case_of(Dtype dtype, std::int64_t keys, Causal causal) {
  Case c;
  c.problem.dtype = dtype;
  c.problem.seqlen_q = 40;
  c.problem.seqlen_k = keys;
  c.problem.causal = causal;
  c.seed = static_cast<std::uint64_t>(keys);
  return c;
}

CpuPlanSpec tiles_of(int keys, bool lazy) {
  CpuPlanSpec spec;
  spec.tile_n = keys;
  spec.lazy_rescale = lazy;
  return spec;
}

class PrecisionProbe : public testing::TestWithParam<Sight> {};
INSTANTIATE_TEST_SUITE_P(Fuzz, PrecisionProbe,
                         testing::Values(Sight{"accumulator", "89-output-in-fp16", Dtype::bf16},
                                         Sight{"accumulator", "89-output-in-fp16", Dtype::fp16},
                                         Sight{"accumulator", "89-output-in-fp16", Dtype::fp32},
                                         Sight{"weights", "p-in-six-bits", Dtype::bf16},
                                         Sight{"weights", "p-in-six-bits", Dtype::fp16},
                                         Sight{"lookup", "88-scores-in-fp16", Dtype::bf16},
                                         Sight{"lookup", "88-scores-in-fp16", Dtype::fp16},
                                         Sight{"lookup", "scale-one-percent-off", Dtype::bf16},
                                         Sight{"lookup", "86-lse-in-base-2", Dtype::fp32}),
                         [](const auto& p) {
                           std::string name(p.param.mutant);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + "_" + std::string(to_string(p.param.dtype));
                         });

TEST_P(PrecisionProbe, SeesItsFaultAndNothingInTheRightKernel) {
  const Sight& sight = GetParam();
  const auto& mutants = forward_mutants();
  const auto mutant = std::find_if(mutants.begin(), mutants.end(), [&](const auto& m) { return m.id == sight.mutant; });
  ASSERT_NE(mutant, mutants.end());
  for (const int tile : {16, 64, 128})
    for (const bool lazy : {false, true})
      for (const Causal causal : {Causal::none, Causal::bottom_right})
        for (const std::int64_t keys : {256, 1024, 3000}) {
          const Case c = case_of(sight.dtype, keys, causal);
          CpuKernel right(tiles_of(tile, lazy));
          const Verdict passed = judge_cpu(sight.property, right, c);
          EXPECT_EQ(passed.status, Status::passed) << passed.error_over_budget << " " << command_line(c);
          const Verdict failed = judge_cpu(sight.property, *mutant->make(tiles_of(tile, lazy)), c);
          EXPECT_EQ(failed.status, Status::wrong_values) << failed.error_over_budget << " " << command_line(c);
        }
}

// A kernel whose P is finer than it declares is no worse for it.
struct FinerProbabilities : KernelPlan {
  float keep_probability(float p) const { return p == 1 ? p : p * (1 + 0x1p-12f); }
};

TEST(WeightsProbe, LeavesRoomForAFinerP) {
  CpuKernel kernel({}, [](const KernelPlan& plan) -> std::unique_ptr<Behaviour> {
    return std::make_unique<BehaviourOf<FinerProbabilities>>(plan);
  });
  const Verdict verdict = judge_cpu("weights", kernel, case_of(Dtype::bf16, 1024, Causal::none));
  EXPECT_EQ(verdict.status, Status::passed) << verdict.error_over_budget;
  EXPECT_GT(verdict.error_over_budget, 0.1);
}

// Key 149 is coded, and all that the row sees of its tile: a rescale that waits leaves the other tile's P relative to
// it.
TEST(WeightsProbe, LeavesOutRowsThatSeeACodedKeyAlone) {
  Case c;
  c.problem.dtype = Dtype::fp16;
  c.problem.headdim = 1;
  c.problem.headdim_v = 2;
  c.problem.seqlen_q = 1;
  c.problem.seqlen_k = 151;
  c.problem.seqused_k = {150};
  c.problem.window_left = 0;
  c.problem.prefix = 3;
  for (const int keys : {16, 64}) {
    CpuKernel kernel(tiles_of(keys, true));
    const Verdict verdict = judge_cpu("weights", kernel, c);
    EXPECT_EQ(verdict.status, Status::passed) << keys << " keys a tile: " << verdict.error_over_budget;
  }
}

// The first and the last of three hundred keys have exchanged their V: every row that looks one of them up sees it.
class ExchangesTwoValues : public CpuKernel {
 public:
  RunReport run(const Case& c, const ForwardArgs& args) override {
    auto* v = static_cast<std::uint8_t*>(args.v.data);
    const std::int64_t size = bytes_of(c.problem.dtype), row = c.problem.headdim_v * size;
    std::uint8_t* last = v + (c.problem.seqlen_k - 1) * args.v.row_stride * size;
    std::swap_ranges(v, v + row, last);
    const RunReport report = CpuKernel::run(c, args);
    std::swap_ranges(v, v + row, last);
    return report;
  }
};

TEST(LookupProbe, SeesTwoExchangedValuesOfHundreds) {
  ExchangesTwoValues kernel;
  const Verdict verdict = judge_cpu("lookup", kernel, case_of(Dtype::bf16, 300, Causal::none));
  EXPECT_EQ(verdict.status, Status::wrong_values);
  EXPECT_GT(verdict.error_over_budget, 100);
}

}  // namespace
}  // namespace attest
