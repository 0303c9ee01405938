// The probes of precision and right kernels of other makes: tensor cores that truncate, partial sums, errors of the
// exponential, lazy rescaling, tiles in either order.
#include <gtest/gtest.h>

#include "attest/fuzz/properties.h"
#include "attest/reference/rounding.h"
#include "emulated_kernel.h"

namespace attest {
namespace {

// The emulated kernel behind the interface.
class EmulatedPlugin : public Kernel {
 public:
  explicit EmulatedPlugin(const EmulatedKernel& kernel, bool tells_normalisation = true)
      : kernel_(kernel), tells_normalisation_(tells_normalisation) {
    capability_.name = "emulated";
  }
  const Capability& capability() const override { return capability_; }
  Numerics numerics(const Case&) const override {
    Numerics n = kernel_.numerics();
    n.normalises_first = n.normalises_first && tells_normalisation_;
    return n;
  }
  std::optional<std::string> unsupported(const Case&) const override { return std::nullopt; }
  RunReport run(const Case& c, const ForwardArgs& args) override {
    const Problem& p = c.problem;
    Inputs inputs{Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim}),
                  Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim}),
                  Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim_v})};
    const auto each_row = [&](Tensor& t, const TensorRef& ref, auto f) {
      for (std::int64_t b = 0; b < t.extents[0]; ++b)
        for (std::int64_t s = 0; s < t.extents[1]; ++s)
          for (std::int64_t h = 0; h < t.extents[2]; ++h)
            f(t.values.data() + t.index(b, s, h, 0), t.extents[3],
              static_cast<std::uint8_t*>(ref.data) +
                  (b * ref.batch_stride + s * ref.row_stride + h * ref.head_stride) * bytes_of(p.dtype));
    };
    const auto read = [&](double* row, std::int64_t n, std::uint8_t* from) { decode_row(p.dtype, from, n, row); };
    each_row(inputs.q, args.q, read);
    each_row(inputs.k, args.k, read);
    each_row(inputs.v, args.v, read);
    Outputs outputs = kernel_.run(p, inputs);
    each_row(outputs.o, args.o,
             [&](double* row, std::int64_t n, std::uint8_t* to) { encode_row(p.dtype, row, n, to); });
    for (std::size_t n = 0; n < outputs.lse->values.size(); ++n)
      args.lse[n] = static_cast<float>(outputs.lse->values[n]);
    return {};
  }

 private:
  EmulatedKernel kernel_;
  bool tells_normalisation_;
  Capability capability_;
};

class PrecisionProbes : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Fuzz, PrecisionProbes, testing::Values(Dtype::bf16, Dtype::fp16, Dtype::fp32),
                         [](const auto& p) { return std::string(to_string(p.param)); });

TEST_P(PrecisionProbes, AccuseNoMakeOfARightKernel) {
  std::uint64_t number = 0;
  for (const Accumulator accumulator : {Accumulator::fused, Accumulator::rounded, Accumulator::tensor_core})
    for (const bool last_tile_first : {false, true})
      for (const bool lazy : {false, true}) {
        EmulatedKernel kernel;
        kernel.dtype = GetParam();
        kernel.accumulator = accumulator;
        kernel.last_tile_first = last_tile_first;
        kernel.lazy_rescale = lazy;
        kernel.lse_through_base_2 = number % 3 == 0;
        kernel.tile = number % 2 == 0 ? 16 : 64;
        kernel.noise = ++number;
        Case c;
        c.problem.dtype = GetParam();
        c.problem.seqlen_q = 24;
        c.problem.seqlen_k = 200 + static_cast<std::int64_t>(17 * number);
        c.problem.causal = number % 2 == 0 ? Causal::bottom_right : Causal::none;
        if (number % 4 == 1) c.problem.window_left = 90;
        c.seed = number;
        EmulatedPlugin plugin(kernel);
        ForwardBuffers buffers;
        Trial trial(plugin, buffers, c);
        for (const std::string_view name : {"accumulator", "weights", "lookup"}) {
          const Property& property = property_named(name);
          if (!property.applies(c)) continue;
          const Verdict verdict = judge(property, trial);
          EXPECT_EQ(verdict.status, Status::passed)
              << name << " " << verdict.error_over_budget << " " << command_line(c);
        }
      }
}

// softmax(S) V as many write it: P is a matrix of its own, divided by its sum and rounded before it meets V.
struct NormalisesFirst : testing::TestWithParam<Dtype> {
  static Verdict judged(std::string_view property, const EmulatedKernel& kernel, bool declared, std::int64_t keys) {
    Case c;
    c.problem.dtype = kernel.dtype;
    c.problem.seqlen_q = 40;
    c.problem.seqlen_k = keys;
    c.problem.causal = Causal::bottom_right;
    c.seed = static_cast<std::uint64_t>(keys);
    EmulatedPlugin plugin(kernel, declared);
    ForwardBuffers buffers;
    Trial trial(plugin, buffers, c);
    return judge(property_named(property), trial);
  }
  static EmulatedKernel kernel_of(Dtype dtype, Fault fault = Fault::none) {
    EmulatedKernel kernel;
    kernel.dtype = dtype;
    kernel.normalises_first = true;
    kernel.noise = 5;
    kernel.fault = fault;
    return kernel;
  }
};
INSTANTIATE_TEST_SUITE_P(Fuzz, NormalisesFirst, testing::Values(Dtype::bf16, Dtype::fp16, Dtype::fp32),
                         [](const auto& p) { return std::string(to_string(p.param)); });

TEST_P(NormalisesFirst, IsNotAccusedWhereItSaysSo) {
  for (const std::int64_t keys : {3, 64, 300, 1000})
    for (const std::string_view name :
         {"reference", "zero_q", "one_v", "one_hot_v", "accumulator", "weights", "lookup", "shift", "mask"}) {
      const Verdict verdict = judged(name, kernel_of(GetParam()), true, keys);
      EXPECT_EQ(verdict.status, Status::passed) << name << " " << keys << " keys: " << verdict.error_over_budget;
    }
}

TEST_P(NormalisesFirst, IsAccusedWhereItDoesNotSaySo) {
  EXPECT_EQ(judged("accumulator", kernel_of(GetParam()), false, 300).status, Status::wrong_values);
}

TEST_P(NormalisesFirst, ItsFaultsAreSeen) {
  for (const auto& [property, fault] : {std::pair<std::string_view, Fault>{"accumulator", Fault::o_in_fp16},
                                        {"one_hot_v", Fault::dropped_key},
                                        {"mask", Fault::dropped_key},
                                        {"lookup", Fault::scale},
                                        {"reference", Fault::scale}})
    for (const std::int64_t keys : {300, 1000}) {
      const Verdict verdict = judged(property, kernel_of(GetParam(), fault), true, keys);
      EXPECT_EQ(verdict.status, Status::wrong_values) << property << " " << keys << ": " << verdict.error_over_budget;
    }
}

TEST(NormalisesFirst16, AShortPIsSeenByItsVariance) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16})
    EXPECT_EQ(NormalisesFirst::judged("reference", NormalisesFirst::kernel_of(dtype, Fault::short_p), true, 300).status,
              Status::wrong_values);
}

}  // namespace
}  // namespace attest
