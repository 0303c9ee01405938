#include "power_faults.h"

#include <Eigen/Core>
#include <algorithm>
#include <bit>

namespace attest::power {
namespace {

double scale_error = 0;
int output_bits = 24;

// To nearest even, `bits` significant ones.
float round_to_bits(float x, int bits) {
  const std::uint32_t drop = 24u - static_cast<std::uint32_t>(bits), pattern = std::bit_cast<std::uint32_t>(x);
  if (drop == 0) return x;
  const std::uint32_t odd = (pattern >> drop) & 1, half = (1u << (drop - 1)) - 1 + odd;
  return std::bit_cast<float>((pattern + half) & ~((1u << drop) - 1));
}

// A key in the middle of those that all rows see, under a causal mask too.
constexpr int chosen_key(const Work& w) { return std::max(0, w.seqlen_k - w.seqlen_q) / 2; }

template <class Plan>
constexpr TileRange all_masked(const Plan& plan, const Work& w) {
  TileRange r = tile_range(plan, w);
  r.full_begin = r.full_end = r.begin;
  return r;
}

struct DroppedKey : KernelPlan {
  constexpr bool visible(const Work& w, int row, int key) const {
    return KernelPlan::visible(w, row, key) && key != chosen_key(w);
  }
  constexpr TileRange range(const Work& w) const { return all_masked(*this, w); }
};
struct AllMasked : KernelPlan {
  constexpr TileRange range(const Work& w) const { return all_masked(*this, w); }
};
// A key that counts twice: ln 2 more on its score.
class DoubledKey : public BehaviourOf<AllMasked> {
 public:
  using BehaviourOf::BehaviourOf;
  float scale_log2(float softmax_scale) const override { return per_score_ = BehaviourOf::scale_log2(softmax_scale); }
  void mask(const Work& work, int row, int key0, float* scores, int n) const override {
    BehaviourOf::mask(work, row, key0, scores, n);
    const int at = chosen_key(work) - key0;
    if (at >= 0 && at < n) scores[at] += 1 / per_score_;
  }

 private:
  mutable float per_score_ = 1;
};
struct ScaleOff : KernelPlan {
  float scale_log2(float softmax_scale) const {
    return static_cast<float>(KernelPlan::scale_log2(softmax_scale) * (1 + scale_error));
  }
};
template <int parts>
struct ScaleOffBy : KernelPlan {  // parts in 1000
  constexpr float scale_log2(float softmax_scale) const {
    return KernelPlan::scale_log2(softmax_scale) * (1 + parts * 1e-3f);
  }
};
struct OutputInFp16 : KernelPlan {  // after each tile of keys: the mildest way, tensor cores round every 16 keys
  float keep_output(float o) const { return static_cast<float>(Eigen::half(o)); }
};
struct OutputInBits : KernelPlan {
  float keep_output(float o) const { return round_to_bits(o, output_bits); }
};
template <int fewer>
struct ShortP : KernelPlan {
  float keep_probability(float p) const { return round_to_bits(p, significant() - fewer); }
  static inline int dtype_bits = 8;
  int significant() const { return dtype_bits; }
};
struct ScoresInFp16 : KernelPlan {
  float keep_score(float s) const { return static_cast<float>(Eigen::half(s)); }
};
struct LseInBase2 : KernelPlan {
  constexpr float lse_of_log2(float log2_sum) const { return log2_sum; }
};

template <class Plan>
std::unique_ptr<Kernel> kernel_of() {
  return std::make_unique<CpuKernel>(measured_plan(), [](const KernelPlan& plan) -> std::unique_ptr<Behaviour> {
    return std::make_unique<BehaviourOf<Plan>>(plan);
  });
}
std::unique_ptr<Kernel> doubled_key() {
  return std::make_unique<CpuKernel>(measured_plan(), [](const KernelPlan& plan) -> std::unique_ptr<Behaviour> {
    return std::make_unique<DoubledKey>(plan);
  });
}

// P's bits depend on the case's dtype, which a plan does not know.
template <int fewer>
class ShortPKernel : public CpuKernel {
 public:
  ShortPKernel()
      : CpuKernel(measured_plan(), [](const KernelPlan& plan) -> std::unique_ptr<Behaviour> {
          return std::make_unique<BehaviourOf<ShortP<fewer>>>(plan);
        }) {}
  RunReport run(const Case& c, const ForwardArgs& args) override {
    ShortP<fewer>::dtype_bits = c.problem.dtype == Dtype::fp16 ? 11 : 8;
    return CpuKernel::run(c, args);
  }
};

class SwappedValues : public CpuKernel {
 public:
  SwappedValues() : CpuKernel(measured_plan()) {}
  RunReport run(const Case& c, const ForwardArgs& args) override {
    swap_values(c.problem, args.v);
    const RunReport report = CpuKernel::run(c, args);
    swap_values(c.problem, args.v);
    return report;
  }

 private:
  static void swap_values(const Problem& p, const TensorRef& v) {
    const std::int64_t size = bytes_of(p.dtype), first = std::max<std::int64_t>(0, p.seqlen_k - p.seqlen_q) / 2;
    auto* row = static_cast<std::uint8_t*>(v.data) + first * v.row_stride * size;
    std::swap_ranges(row, row + p.headdim_v * size, row + v.row_stride * size);
  }
};

// Query 77 of the last head misses its first tile of keys: one row of all.
class OneWrongRow : public CpuKernel {
 public:
  OneWrongRow() : CpuKernel(measured_plan()) {}
  RunReport run(const Case& c, const ForwardArgs& args) override {
    const RunReport report = CpuKernel::run(c, args);
    const Problem& p = c.problem;
    const std::int64_t i = std::min<std::int64_t>(77, p.seqlen_q - 1), h = p.nheads - 1, size = bytes_of(p.dtype);
    constexpr std::int64_t missed = 64;
    Case row = c;
    row.problem.batch = row.problem.nheads = row.problem.nheads_k = row.problem.seqlen_q = 1;
    row.problem.causal = Causal::none;
    row.problem.seqlen_k = p.causal == Causal::none ? p.seqlen_k : i + 1 + p.seqlen_k - p.seqlen_q;
    row.problem.seqlen_k = std::max<std::int64_t>(1, row.problem.seqlen_k - missed);
    ForwardArgs one = args;
    const auto move = [&](TensorRef& t, std::int64_t at_row, std::int64_t head) {
      t.data = static_cast<std::uint8_t*>(t.data) + (at_row * t.row_stride + head * t.head_stride) * size;
    };
    move(one.q, i, h);
    move(one.o, i, h);
    move(one.k, missed, h / (p.nheads / p.nheads_k));
    move(one.v, missed, h / (p.nheads / p.nheads_k));
    one.lse += h * p.seqlen_q + i;
    CpuKernel::run(row, one);
    return report;
  }
};

constexpr PlantedFault faults[] = {
    {"none", kernel_of<KernelPlan>},
    {"one key dropped", kernel_of<DroppedKey>},
    {"one key doubled", doubled_key},
    {"two V rows swapped", [] { return std::unique_ptr<Kernel>(new SwappedValues); }},
    {"scale x 1.01", kernel_of<ScaleOffBy<10>>},
    {"scale x 1.001", kernel_of<ScaleOffBy<1>>},
    {"O accumulated in fp16", kernel_of<OutputInFp16>},
    {"P one bit short", [] { return std::unique_ptr<Kernel>(new ShortPKernel<1>); }},
    {"P two bits short", [] { return std::unique_ptr<Kernel>(new ShortPKernel<2>); }},
    {"S in fp16", kernel_of<ScoresInFp16>},
    {"LSE in base 2", kernel_of<LseInBase2>},
    {"one wrong row in 4096", [] { return std::unique_ptr<Kernel>(new OneWrongRow); }, true},
};

}  // namespace

std::span<const PlantedFault> planted_faults() { return faults; }

std::unique_ptr<Kernel> kernel_with_scale_error(double error) {
  scale_error = error;
  return kernel_of<ScaleOff>();
}

std::unique_ptr<Kernel> kernel_with_output_bits(int bits) {
  output_bits = bits;
  return kernel_of<OutputInBits>();
}

CpuPlanSpec measured_plan() { return parse_cpu_plan_spec("tile_m=64,tile_n=64,warps=4,stages=1,lazy_rescale=0"); }

}  // namespace attest::power
