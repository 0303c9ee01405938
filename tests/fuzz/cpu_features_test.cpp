// The CPU kernel on every feature of a Problem, against a truth written out in the test.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "attest/cpu/cpu_kernel.h"
#include "attest/gpu/forward_buffers.h"
#include "whole_problem.h"

namespace attest {
namespace {

// Infinities and NaN count as equal to themselves alone.
double worst_difference(const Tensor& is, const Tensor& should) {
  double worst = 0;
  for (std::size_t i = 0; i < is.values.size(); ++i) {
    const double a = is.values[i], b = should.values[i];
    if (a == b) continue;
    worst = std::max(worst, std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : 1e300);
  }
  return worst;
}

/// What is wrong with a run of case k; empty if nothing.
std::string complaint(CpuKernel& kernel, ForwardBuffers& buffers, std::uint64_t k, Dtype dtype, double o_tolerance,
                      double lse_tolerance) {
  const Case c = test::whole_case(k, dtype);
  const Inputs inputs = test::whole_inputs(c);
  const Outputs truth = test::whole_truth(c, inputs);
  const ForwardRun run = buffers.run(kernel, c, inputs);
  const double o = worst_difference(run.outputs.o, truth.o), lse = worst_difference(*run.outputs.lse, *truth.lse);
  const std::int64_t misplaced = run.outputs.unwritten_o + run.outputs.unwritten_lse + run.outputs.out_of_bounds;
  if (run.report.hazards.empty() && misplaced == 0 && o <= o_tolerance && lse <= lse_tolerance) return {};
  return fmt::format("case {}: O off by {}, LSE by {}, {} elements or bytes misplaced, {}\n{}", k, o, lse, misplaced,
                     fmt::join(run.report.hazards, "; "), command_line(c));
}

class CpuFeatures : public testing::TestWithParam<std::tuple<Dtype, double, double>> {};

TEST_P(CpuFeatures, GiveTheTruth) {
  const auto [dtype, o_tolerance, lse_tolerance] = GetParam();
  CpuKernel kernel;
  ForwardBuffers buffers;
  for (std::uint64_t k = 0; k < 400; ++k)
    ASSERT_EQ(complaint(kernel, buffers, k, dtype, o_tolerance, lse_tolerance), "");
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CpuFeatures,
                         testing::Values(std::tuple(Dtype::fp32, 3e-5, 3e-5), std::tuple(Dtype::fp16, 1e-2, 1e-4),
                                         std::tuple(Dtype::bf16, 6e-2, 1e-4), std::tuple(Dtype::fp8_e4m3, 0.5, 1e-4),
                                         std::tuple(Dtype::fp8_e5m2, 1.0, 1e-4)),
                         [](const auto& test) { return std::string(to_string(std::get<0>(test.param))); });

// ---- every decision that a feature adds is one hidden member away from a wrong kernel, and shows

struct CapAfterMask : KernelPlan {
  constexpr bool masks_first() const { return true; }
};
struct BiasInsideCap : KernelPlan {
  template <class Tanh>
  constexpr float score(const ScoreNumbers& n, float dot, int distance, float bias_value, Tanh tanh) const {
    if (!softcap || !bias) return KernelPlan::score(n, dot, distance, bias_value, tanh);
    return n.softcap * tanh((dot * n.scale + bias_value) / n.softcap) -
           (alibi ? n.slope * static_cast<float>(distance) : 0.0f);
  }
};
struct SlopeSign : KernelPlan {
  template <class Tanh>
  constexpr float score(ScoreNumbers n, float dot, int distance, float bias_value, Tanh tanh) const {
    n.slope = -n.slope;
    return KernelPlan::score(n, dot, distance, bias_value, tanh);
  }
};
struct BiasRowsPastTheLastQuery : KernelPlan {
  constexpr int bias_row_limit(const Work& w) const { return (w.q_tile + 1) * tile_m; }
};
struct NoTailMaskWithBias : KernelPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    return bias && key >= w.seqlen_k ? true : KernelPlan::visible(w, row, key);
  }
};
struct SinkForgotten : KernelPlan {
  constexpr bool takes_sink(const Work&) const { return false; }
};
struct SinkOfEverySplit : KernelPlan {
  constexpr bool takes_sink(const Work&) const { return sink; }
};
struct PrefixOneShort : KernelPlan {
  constexpr int prefix_end(const Work& w) const { return KernelPlan::prefix_end(w) - 1; }
  constexpr TileRange range(const Work& w) const { return tile_range(*this, w); }
};
struct DocumentOneLong : KernelPlan {
  constexpr int document_end(const Work& w, int row) const {
    const int end = KernelPlan::document_end(w, row);
    return end < std::numeric_limits<int>::max() ? end + 1 : end;
  }
  constexpr TileRange range(const Work& w) const { return tile_range(*this, w); }
};
struct SeqUsedIgnored : KernelPlan {
  constexpr ForwardArgs arguments(ForwardArgs a, const GridExtents&) const { return a.seqused_k = nullptr, a; }
};
struct PackedOffsetsIgnored : KernelPlan {
  constexpr HeadPlace combine_place(HeadPlace at) const { return at.packed = false, at; }
};
struct HeadsOfCombineTransposed : KernelPlan {
  constexpr std::int64_t lse_row(HeadPlace at) const {
    if (num_splits > 1) std::swap(at.head, at.batch), std::swap(at.nheads, at.num_batches);
    return KernelPlan::lse_row(at);
  }
};
struct NoGuardInCombine : KernelPlan {
  constexpr float combine_shift(float largest_lse) const { return largest_lse; }
};
struct BoundOfAPage : KernelPlan {
  constexpr int row_limit(Operand x, const Work& w) const {
    const int rows = KernelPlan::row_limit(x, w);
    return x != Operand::v || w.page_size == 0 ? rows : (rows + w.page_size - 1) / w.page_size * w.page_size;
  }
};
struct KeyScaleTwice : KernelPlan {
  constexpr float score_scale(float scale, float q, float k) const { return KernelPlan::score_scale(scale, q, k) * k; }
};
struct ValueScaleDropped : KernelPlan {
  constexpr float output_scale(float) const { return 1.0f; }
};

template <class Plan>
std::unique_ptr<Behaviour> behaviour_of(const KernelPlan& plan) {
  return std::make_unique<BehaviourOf<Plan>>(plan);
}

TEST(CpuFeatureBugs, ShowInSomeCase) {
  struct Bug {
    const char* name;
    CpuKernel::MakeBehaviour make;
    Dtype dtype = Dtype::fp32;
  };
  const Bug bugs[] = {{"cap after mask", behaviour_of<CapAfterMask>},
                      {"bias inside cap", behaviour_of<BiasInsideCap>},
                      {"slope sign", behaviour_of<SlopeSign>},
                      {"bias rows past the last query", behaviour_of<BiasRowsPastTheLastQuery>},
                      {"no tail mask with bias", behaviour_of<NoTailMaskWithBias>},
                      {"sink forgotten", behaviour_of<SinkForgotten>},
                      {"sink of every split", behaviour_of<SinkOfEverySplit>},
                      {"prefix one short", behaviour_of<PrefixOneShort>},
                      {"document one long", behaviour_of<DocumentOneLong>},
                      {"seqused_k ignored", behaviour_of<SeqUsedIgnored>},
                      {"combine of packed rows as of dense ones", behaviour_of<PackedOffsetsIgnored>},
                      {"heads of combine transposed", behaviour_of<HeadsOfCombineTransposed>},
                      {"no guard in combine", behaviour_of<NoGuardInCombine>},
                      {"bound of a page", behaviour_of<BoundOfAPage>},
                      {"k descale twice", behaviour_of<KeyScaleTwice>, Dtype::fp8_e4m3},
                      {"v descale dropped", behaviour_of<ValueScaleDropped>, Dtype::fp8_e4m3}};
  ForwardBuffers buffers;
  for (const Bug& bug : bugs) {
    CpuKernel kernel({}, bug.make);
    const double tolerance = bug.dtype == Dtype::fp32 ? 3e-5 : 0.5;
    bool seen = false;
    for (std::uint64_t k = 0; k < 400 && !seen; ++k)
      seen = !complaint(kernel, buffers, k, bug.dtype, tolerance, 1e-4).empty();
    EXPECT_TRUE(seen) << bug.name;
  }
}

}  // namespace
}  // namespace attest
