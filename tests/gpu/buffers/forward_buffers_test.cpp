#include "attest/gpu/forward_buffers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "attest/reference/rounding.h"

namespace attest {
namespace {

// Writes a value of its own to every element of O and LSE, and then does what the test plants.
class Writer : public Kernel {
 public:
  using Then = std::function<void(const Case&, const ForwardArgs&)>;
  explicit Writer(Then then = {}) : then_(std::move(then)) {}

  const Capability& capability() const override { return capability_; }
  Numerics numerics(const Case& c) const override { return flash_numerics(c.problem.dtype); }
  std::optional<std::string> unsupported(const Case&) const override { return std::nullopt; }

  RunReport run(const Case& c, const ForwardArgs& args) override {
    ++runs;
    const Problem& p = c.problem;
    for (std::int64_t b = 0; plain && b < p.batch; ++b)
      for (std::int64_t i = 0; i < p.seqlen_q; ++i)
        for (std::int64_t h = 0; h < p.nheads; ++h) {
          for (std::int64_t d = 0; d < p.headdim_v; ++d)
            if (!skip_o || !(b == 1 && i == 2 && h == 0 && d == 3))
              store(p.dtype, args.o, b, i, h, d, value(b, i, h, d));
          if (!skip_lse || i != 1)
            args.lse[(b * p.nheads + h) * p.seqlen_q + i] = static_cast<float>(b + 10 * h + 100 * i);
        }
    if (then_) then_(c, args);
    return {{"a hazard"}};
  }

  static double value(std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t d) {
    return static_cast<double>(b + 2 * i + 16 * h + 64 * d);
  }
  static std::byte* at(Dtype dtype, const TensorRef& t, std::int64_t b, std::int64_t s, std::int64_t h,
                       std::int64_t d) {
    return static_cast<std::byte*>(t.data) +
           (b * t.batch_stride + s * t.row_stride + h * t.head_stride + d) * bytes_of(dtype);
  }
  static void store(Dtype dtype, const TensorRef& t, std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d,
                    double value) {
    const std::uint32_t bits = encode(dtype, value);
    std::memcpy(at(dtype, t, b, s, h, d), &bits, static_cast<std::size_t>(bytes_of(dtype)));
  }
  static double load(Dtype dtype, const TensorRef& t, std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, at(dtype, t, b, s, h, d), static_cast<std::size_t>(bytes_of(dtype)));
    return decode(dtype, bits);
  }

  int runs = 0;
  bool skip_o = false, skip_lse = false;
  bool plain = true;  // tensors as they lie without varlen; else `then` writes
  Capability capability_;

 private:
  Then then_;
};

Case small_case(Dtype dtype, Layout layout) {
  Case c;
  c.problem = {2, 2, 1, 4, 3, 8, 5, dtype, {}, Causal::none, -1, -1};
  c.layout = layout;
  return c;
}

Inputs numbered_inputs(const Problem& p) {
  Inputs inputs{Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim}),
                Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim}),
                Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim_v})};
  double next = 1;
  for (Tensor* tensor : {&inputs.q, &inputs.k, &inputs.v})
    for (double& value : tensor->values) value = std::fmod(next++, 128);
  return inputs;
}

class EveryLayout : public testing::TestWithParam<std::tuple<Dtype, Layout>> {
 protected:
  Case c_ = small_case(std::get<0>(GetParam()), std::get<1>(GetParam()));
  Dtype dtype_ = c_.problem.dtype;
  Inputs inputs_ = numbered_inputs(c_.problem);
  ForwardBuffers buffers_;
};

INSTANTIATE_TEST_SUITE_P(ForwardBuffers, EveryLayout,
                         testing::Combine(testing::Values(Dtype::fp16, Dtype::bf16, Dtype::fp32),
                                          testing::Values(Layout{}, Layout{Layout::Order::bhsd, 0, 0, 0},
                                                          Layout{Layout::Order::bshd, 3, 0, 1},
                                                          Layout{Layout::Order::bhsd, 8, 2, 8},
                                                          Layout{Layout::Order::bshd, 0, 1, 0})));

TEST_P(EveryLayout, TheKernelFindsItsInputsAndNanAroundThem) {
  Writer kernel([&](const Case& c, const ForwardArgs& args) {
    const auto check = [&](const TensorRef& t, const Tensor& tensor) {
      std::size_t index = 0;
      const auto& e = tensor.extents;
      for (std::int64_t b = 0; b < e[0]; ++b)
        for (std::int64_t s = 0; s < e[1]; ++s)
          for (std::int64_t h = 0; h < e[2]; ++h)
            for (std::int64_t d = 0; d < e[3]; ++d)
              EXPECT_EQ(Writer::load(dtype_, t, b, s, h, d), tensor.values[index++]);
      EXPECT_TRUE(std::isnan(Writer::load(dtype_, t, 0, 0, 0, -1)));
      EXPECT_TRUE(std::isnan(Writer::load(dtype_, t, e[0] - 1, e[1] - 1, e[2] - 1, e[3])));
      if (c.layout.row_gap > 0) {
        EXPECT_TRUE(std::isnan(Writer::load(dtype_, t, 0, 0, 0, e[3])));
      }
      if (c.layout.seq_gap > 0) {
        EXPECT_TRUE(std::isnan(Writer::load(dtype_, t, 0, e[1], 0, 0)));
      }
      EXPECT_EQ((reinterpret_cast<std::uintptr_t>(t.data) -
                 static_cast<std::uintptr_t>(c.layout.base_offset * bytes_of(dtype_))) %
                    256,
                0u);
    };
    check(args.q, inputs_.q);
    check(args.k, inputs_.k);
    check(args.v, inputs_.v);
  });
  buffers_.run(kernel, c_, inputs_);
}

// Finds every row of a tensor by the numbers that a kernel is handed, and by nothing else.
template <class Visit>
void for_kernel_rows(const TensorRef& t, const Case& c, const std::int32_t* cu_seqlens, const std::int32_t* table,
                     const ForwardArgs& args, std::int64_t heads, const std::vector<std::int64_t>& lengths,
                     Visit visit) {
  for (std::int64_t b = 0; b < c.problem.batch; ++b)
    for (std::int64_t s = 0; s < lengths[static_cast<std::size_t>(b)]; ++s)
      for (std::int64_t h = 0; h < heads; ++h) {
        std::int64_t row = b * t.batch_stride + s * t.row_stride;
        if (cu_seqlens) row = (cu_seqlens[b] + s) * t.row_stride;
        if (table)
          row = table[b * args.pages_per_sequence + s / args.page_size] * t.batch_stride +
                s % args.page_size * t.row_stride;
        visit(b, s, h, row + h * t.head_stride);
      }
}

TEST(ForwardBuffersOfRaggedCases, TheKernelFindsItsRowsAndNanElsewhere) {
  for (const Dtype dtype : all_dtypes)
    for (const bool paged : {false, true})
      for (const auto order : {Layout::Order::bshd, Layout::Order::bhsd}) {
        Case c;
        Problem& p = c.problem;
        p.batch = 4, p.nheads = 4, p.nheads_k = 2, p.headdim = 3, p.headdim_v = 5, p.dtype = dtype;
        p.varlen_q = {0, 3, 0, 2};
        p.seqlen_q = 3;
        p.seqlen_k = 7;
        p.bias = paged ? Bias::bqk : Bias::hqk;
        if (paged)
          p.seqused_k = {4, 0, 7, 5}, c.layout.page_size = 2;
        else
          p.varlen_k = {4, 0, 7, 5};
        c.layout.order = order, c.layout.row_gap = 1, c.layout.seq_gap = 2, c.layout.base_offset = 1;
        validate(c);
        const std::vector<std::int64_t> queries = p.varlen_q, keys{4, 0, 7, 5};
        Inputs inputs = numbered_inputs(p);
        inputs.bias = Tensor({paged ? p.batch : 1, paged ? 1 : p.nheads, p.seqlen_q, p.seqlen_k});
        inputs.alibi_slopes = Tensor({p.batch, p.nheads, 1, 1}, 0.25);
        double next = 0;
        for (double& x : inputs.bias.values) x = next++;
        for (Tensor* tensor : {&inputs.q, &inputs.k, &inputs.v})
          for (double& x : tensor->values) x = round_to(dtype, x);

        Writer kernel([&](const Case&, const ForwardArgs& args) {
          ASSERT_EQ(args.page_table != nullptr, paged);
          ASSERT_EQ(args.cu_seqlens_k != nullptr, !paged);
          EXPECT_EQ(args.sink, nullptr);
          EXPECT_EQ(args.alibi_slopes[15], 0.25f);
          const auto check = [&](const TensorRef& t, const Tensor& tensor, const std::int32_t* sums,
                                 const std::int32_t* table, const std::vector<std::int64_t>& lengths) {
            const TensorRef first{t.data, 0, 0, 0};
            const std::int64_t dim = tensor.extents[3];
            for_kernel_rows(t, c, sums, table, args, tensor.extents[2], lengths,
                            [&](std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t at) {
                              for (std::int64_t d = 0; d < dim; ++d)
                                ASSERT_EQ(Writer::load(dtype, first, 0, 0, 0, at + d), tensor.at(b, s, h, d));
                              ASSERT_TRUE(std::isnan(Writer::load(dtype, first, 0, 0, 0, at + dim)));  // the gap
                            });
          };
          check(args.q, inputs.q, args.cu_seqlens_q, nullptr, queries);
          check(args.k, inputs.k, args.cu_seqlens_k, args.page_table, keys);
          check(args.v, inputs.v, args.cu_seqlens_k, args.page_table, keys);
          if (paged) {  // the last page of entry 3 holds one key; its second row is poison
            const std::int64_t page = args.page_table[3 * args.pages_per_sequence + 2];
            EXPECT_TRUE(std::isnan(Writer::load(dtype, args.k, page, 1, 0, 0)));
            EXPECT_FALSE(std::isnan(Writer::load(dtype, args.k, page, 0, 0, 0)));
          }
          for (std::int64_t b = 0; b < p.batch; ++b)
            for (std::int64_t i = 0; i < queries[static_cast<std::size_t>(b)]; ++i)
              for (std::int64_t j = 0; j < keys[static_cast<std::size_t>(b)]; ++j)
                ASSERT_EQ(
                    args.bias[b * args.bias_batch_stride + 3 * args.bias_head_stride + i * args.bias_row_stride + j],
                    inputs.bias.at(paged ? b : 0, paged ? 0 : 3, i, j));
          // O and LSE, packed
          const TensorRef o{args.o.data, 0, 0, 0};
          for_kernel_rows(args.o, c, args.cu_seqlens_q, nullptr, args, p.nheads, queries,
                          [&](std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t at) {
                            for (std::int64_t d = 0; d < p.headdim_v; ++d)
                              Writer::store(output_dtype(dtype), o, 0, 0, 0, at + d, Writer::value(b, i, h, d));
                            args.lse[h * 5 + args.cu_seqlens_q[b] + i] = static_cast<float>(b + 10 * h + 100 * i);
                          });
        });
        kernel.plain = false;
        ForwardBuffers buffers;
        const ForwardRun run = buffers.run(kernel, c, inputs);
        EXPECT_EQ(kernel.runs, 1) << "nothing was left unwritten";
        EXPECT_EQ(run.outputs.out_of_bounds, 0);
        EXPECT_EQ(run.outputs.o.at(3, 1, 2, 4), round_to(output_dtype(dtype), Writer::value(3, 1, 2, 4)));
        EXPECT_EQ(run.outputs.o.at(3, 2, 2, 4), 0) << "past the entry's length";
        EXPECT_EQ(run.outputs.lse->at(3, 2, 1, 0), 123);
      }
}

TEST(ForwardBuffersOfRaggedCases, WritesToLengthsAndBiasAreSeen) {
  Case c = small_case(Dtype::bf16, {});
  c.problem.varlen_q = {4, 2};
  c.problem.bias = Bias::qk;
  Inputs inputs = numbered_inputs(c.problem);
  inputs.bias = Tensor({1, 1, 4, 3}, 1.0);
  ForwardBuffers buffers;
  Writer lengths([](const Case&, const ForwardArgs& args) { const_cast<std::int32_t*>(args.cu_seqlens_q)[2] = 9; });
  lengths.plain = false;
  EXPECT_EQ(buffers.run(lengths, c, inputs).outputs.out_of_bounds, 1);
  Writer bias([](const Case&, const ForwardArgs& args) { const_cast<float*>(args.bias)[3] = 0; });
  bias.plain = false;
  EXPECT_EQ(buffers.run(bias, c, inputs).outputs.out_of_bounds, 2);
}

TEST_P(EveryLayout, WhatTheKernelWroteIsGathered) {
  Writer kernel;
  const ForwardRun run = buffers_.run(kernel, c_, inputs_);
  EXPECT_EQ(kernel.runs, 1);
  EXPECT_EQ(run.outputs.unwritten_o, 0);
  EXPECT_EQ(run.outputs.unwritten_lse, 0);
  EXPECT_EQ(run.outputs.out_of_bounds, 0);
  EXPECT_EQ(run.report.hazards, std::vector<std::string>{"a hazard"});
  EXPECT_EQ(run.outputs.o.at(1, 3, 1, 4), round_to(dtype_, Writer::value(1, 3, 1, 4)));
  EXPECT_EQ(run.outputs.o.at(0, 2, 1, 0), Writer::value(0, 2, 1, 0));
  EXPECT_EQ(run.outputs.lse->at(1, 1, 3, 0), 311);
}

TEST_P(EveryLayout, AnElementLeftOutIsUnwrittenAndItsNeighboursAreNot) {
  Writer kernel;
  kernel.skip_o = true;
  const ForwardRun run = buffers_.run(kernel, c_, inputs_);
  EXPECT_EQ(kernel.runs, 2);
  EXPECT_EQ(run.outputs.unwritten_o, 1);
  EXPECT_EQ(run.outputs.unwritten_lse, 0);
  kernel.skip_o = false;
  kernel.skip_lse = true;
  EXPECT_EQ(buffers_.run(kernel, c_, inputs_).outputs.unwritten_lse, 2 * 2);
}

TEST_P(EveryLayout, AResultThatEqualsThePatternIsNoUnwrittenElement) {
  // The first element's pattern is 1 in each 16-bit word in the first run and another in the second.
  std::uint32_t bits = 0;
  Writer kernel([&](const Case&, const ForwardArgs& args) {
    bits = dtype_ == Dtype::fp32 ? 0x00020001u : 1u;
    std::memcpy(args.o.data, &bits, static_cast<std::size_t>(bytes_of(dtype_)));
  });
  const ForwardRun run = buffers_.run(kernel, c_, inputs_);
  EXPECT_EQ(kernel.runs, 2);
  EXPECT_EQ(run.outputs.unwritten_o, 0);
  EXPECT_EQ(run.outputs.o.values[0], decode(dtype_, bits));
}

TEST_P(EveryLayout, WritesOutsideAreSeenOnBothSidesOfEveryTensor) {
  const Problem& p = c_.problem;
  const auto expect_found = [&](const char* what, Writer::Then then) {
    Writer kernel(std::move(then));
    EXPECT_GT(buffers_.run(kernel, c_, inputs_).outputs.out_of_bounds, 0) << what;
  };
  const auto put = [&](const TensorRef& t, std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) {
    Writer::store(dtype_, t, b, s, h, d, -1);  // inputs are 0 and more
  };
  expect_found("before O", [&](const Case&, const ForwardArgs& a) { put(a.o, 0, 0, 0, -1); });
  expect_found("after O",
               [&](const Case&, const ForwardArgs& a) { put(a.o, p.batch - 1, p.seqlen_q - 1, p.nheads - 1, 5); });
  expect_found("row seqlen_q of the last member",
               [&](const Case&, const ForwardArgs& a) { put(a.o, p.batch - 1, p.seqlen_q, p.nheads - 1, 0); });
  expect_found("before LSE", [&](const Case&, const ForwardArgs& a) { a.lse[-1] = 0; });
  expect_found("after LSE", [&](const Case&, const ForwardArgs& a) { a.lse[p.batch * p.nheads * p.seqlen_q] = 0; });
  expect_found("Q", [&](const Case&, const ForwardArgs& a) { put(a.q, 1, 3, 1, 7); });
  expect_found("K", [&](const Case&, const ForwardArgs& a) { put(a.k, 0, 0, 0, 0); });
  expect_found("K's tail", [&](const Case&, const ForwardArgs& a) { put(a.k, p.batch - 1, p.seqlen_k, 0, 0); });
  expect_found("V's tail", [&](const Case&, const ForwardArgs& a) { put(a.v, p.batch - 1, p.seqlen_k, 0, 4); });
  if (c_.layout.row_gap > 0)
    expect_found("a row's gap in O", [&](const Case&, const ForwardArgs& a) { put(a.o, 0, 1, 0, 5); });
  if (c_.layout.seq_gap > 0)
    expect_found("a sequence's gap in O", [&](const Case&, const ForwardArgs& a) { put(a.o, 0, p.seqlen_q, 0, 0); });
}

// Adding 0.0 changes a subnormal where subnormals are flushed: the neighbour of bug 104.
TEST_P(EveryLayout, AFlushedNeighbourIsSeen) {
  Writer kernel([&](const Case&, const ForwardArgs& a) {
    const double neighbour = Writer::load(dtype_, a.o, 0, 0, 0, -1);
    EXPECT_NE(neighbour, 0);
    EXPECT_LT(std::abs(neighbour), dtype_ == Dtype::fp16 ? 0x1p-14 : 0x1p-126);
    Writer::store(dtype_, a.o, 0, 0, 0, -1, 0);
  });
  EXPECT_GT(buffers_.run(kernel, c_, inputs_).outputs.out_of_bounds, 0);
}

// Every representable value there and back, where the buffers' conversions are not the oracle's.
TEST(ForwardBuffers, ConversionsAreTheOracles) {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    Case c = small_case(dtype, {});
    c.problem = {1, 1, 1, 256, 256, 256, 256, dtype, {}, Causal::none, -1, -1};
    Inputs inputs{Tensor({1, 256, 1, 256}), Tensor({1, 256, 1, 256}), Tensor({1, 256, 1, 256})};
    for (std::uint32_t bits = 0; bits < 1u << 16; ++bits) inputs.v.values[bits] = decode(dtype, bits);
    Writer kernel([&](const Case&, const ForwardArgs& args) {
      for (std::int64_t s = 0; s < 256; ++s)
        for (std::int64_t d = 0; d < 256; ++d) {
          const double value = Writer::load(dtype, args.v, 0, s, 0, d);
          const double expected = inputs.v.at(0, s, 0, d);
          EXPECT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected))) << s << ' ' << d;
          std::memcpy(Writer::at(dtype, args.o, 0, s, 0, d), Writer::at(dtype, args.v, 0, s, 0, d), 2);
        }
    });
    ForwardBuffers buffers;
    const ForwardRun run = buffers.run(kernel, c, inputs);
    for (std::size_t i = 0; i < 1u << 16; ++i) {
      const double value = run.outputs.o.values[i], expected = inputs.v.values[i];
      EXPECT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected))) << i;
    }
  }
}

TEST(ForwardBuffers, LseComesInBaseE) {
  Writer kernel;
  kernel.capability_.lse_base = 2;
  const Case c = small_case(Dtype::fp16, {});
  ForwardBuffers buffers;
  const ForwardRun run = buffers.run(kernel, c, numbered_inputs(c.problem));
  EXPECT_DOUBLE_EQ(run.outputs.lse->at(1, 1, 3, 0), 311 * std::log(2.0));
}

TEST(ForwardBuffers, AKernelWithoutLseHasNone) {
  Writer kernel;
  kernel.capability_.offers_lse = false;
  const Case c = small_case(Dtype::fp16, {});
  ForwardBuffers buffers;
  EXPECT_FALSE(buffers.run(kernel, c, numbered_inputs(c.problem)).outputs.lse.has_value());
}

TEST(ForwardBuffers, AnExceptionOfTheKernelHasAName) {
  Writer kernel([](const Case&, const ForwardArgs&) { throw std::runtime_error("no such tile"); });
  const Case c = small_case(Dtype::fp16, {});
  ForwardBuffers buffers;
  EXPECT_THROW(buffers.run(kernel, c, numbered_inputs(c.problem)), KernelThrew);
}

TEST(ForwardBuffers, NothingBeforeLeaksIntoTheNextCase) {
  ForwardBuffers buffers;
  Writer large;
  Case c = small_case(Dtype::fp32, {});
  c.problem.seqlen_q = c.problem.seqlen_k = 300;
  buffers.run(large, c, numbered_inputs(c.problem));
  const Case small = small_case(Dtype::fp16, {});
  Writer kernel([&](const Case&, const ForwardArgs& a) {
    for (std::int64_t s = 3; s < 60; ++s) EXPECT_TRUE(std::isnan(Writer::load(Dtype::fp16, a.k, 1, s, 0, 0)));
  });
  EXPECT_EQ(buffers.run(kernel, small, numbered_inputs(small.problem)).outputs.out_of_bounds, 0);
}

TEST(ForwardBuffers, EmptySequencesHaveMarginsOnly) {
  Writer kernel;
  Case c = small_case(Dtype::bf16, {Layout::Order::bhsd, 1, 0, 1});
  c.problem.seqlen_q = c.problem.seqlen_k = 0;
  ForwardBuffers buffers;
  const ForwardRun run = buffers.run(kernel, c, numbered_inputs(c.problem));
  EXPECT_EQ(kernel.runs, 1);
  EXPECT_EQ(run.outputs.out_of_bounds, 0);
  EXPECT_TRUE(run.outputs.o.values.empty());
}

// Checks what a backward is handed and writes a value of its own to every element of the gradients.
class BackwardWriter : public Writer {
 public:
  using ThenBackward = std::function<void(const BackwardArgs&)>;
  explicit BackwardWriter(ThenBackward then) : then_(std::move(then)) {
    capability_.offers_gradients = true;
    capability_.lse_base = 2;
  }
  RunReport run_backward(const Case& c, const BackwardArgs& args) override {
    ++backward_runs;
    const Problem& p = c.problem;
    const Dtype dtype = p.dtype;
    EXPECT_EQ(load(dtype, args.forward.o, 1, 3, 1, 4), value(1, 3, 1, 4));
    EXPECT_TRUE(std::isnan(load(dtype, args.forward.o, p.batch - 1, p.seqlen_q - 1, p.nheads - 1, p.headdim_v)));
    EXPECT_EQ(args.forward.lse[(1 * p.nheads + 1) * p.seqlen_q + 3], 311) << "in the kernel's own base";
    EXPECT_EQ(load(dtype, args.dout, 1, 2, 0, 1), 0.5);
    const auto fill = [&](const TensorRef& t, std::int64_t rows, std::int64_t heads, std::int64_t dim) {
      for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t s = 0; s < rows; ++s)
          for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t d = 0; d < dim; ++d)
              if (&t != &args.dk || !(skip_dk && b == 0 && s == 1 && d == 2))
                store(dtype, t, b, s, h, d, 2 + d + 16 * s);
    };
    fill(args.dq, p.seqlen_q, p.nheads, p.headdim);
    fill(args.dk, p.seqlen_k, p.nheads_k, p.headdim);
    fill(args.dv, p.seqlen_k, p.nheads_k, p.headdim_v);
    for (std::int64_t h = 0; h < p.nheads; ++h) args.dsink[h] = static_cast<float>(h) + 0.25f;
    for (std::int64_t i = 0; i < p.seqlen_q; ++i)
      for (std::int64_t j = 0; j < p.seqlen_k; ++j)
        args.dbias[i * args.forward.bias_row_stride + j] = static_cast<float>(10 * i + j);
    then_(args);
    return {{"a hazard of the backward"}};
  }
  int backward_runs = 0;
  bool skip_dk = false;

 private:
  ThenBackward then_;
};

TEST(BackwardBuffers, GradientsAreGatheredAndWhatIsAmissIsTold) {
  Case c = small_case(Dtype::fp16, {Layout::Order::bhsd, 8, 2, 8});
  c.problem.sink = true, c.problem.bias = Bias::qk, c.backward = true;
  Inputs inputs = numbered_inputs(c.problem);
  inputs.dout = Tensor({2, 4, 2, 5}, 0.5);
  inputs.sink = Tensor({1, 2, 1, 1}, 1.0);
  inputs.bias = Tensor({1, 1, 4, 3}, 1.0);
  ForwardBuffers buffers;
  BackwardWriter right([](const BackwardArgs&) {});
  const ForwardRun run = buffers.run_backward(right, c, inputs);
  EXPECT_EQ(right.backward_runs, 1);
  EXPECT_EQ(run.outputs.out_of_bounds, 0);
  ASSERT_TRUE(run.outputs.gradients);
  EXPECT_EQ(run.outputs.gradients->dk.at(1, 2, 0, 7), 2 + 7 + 32);
  EXPECT_EQ(run.outputs.gradients->dsink.at(0, 1, 0, 0), 1.25);
  EXPECT_EQ(run.outputs.gradients->dbias.at(0, 0, 3, 2), 32);
  EXPECT_EQ(run.report.hazards, (std::vector<std::string>{"a hazard", "a hazard of the backward"}));

  right.skip_dk = true;
  EXPECT_EQ(buffers.run_backward(right, c, inputs).outputs.unwritten_gradients,
            (std::array<std::int64_t, 5>{0, 1, 0, 0, 0}));
  EXPECT_EQ(right.backward_runs, 3);

  BackwardWriter tramples([](const BackwardArgs& args) { static_cast<std::uint16_t*>(args.forward.o.data)[0] ^= 1; });
  EXPECT_EQ(buffers.run_backward(tramples, c, inputs).outputs.out_of_bounds, 1) << "O is an input now";
  BackwardWriter beyond([](const BackwardArgs& args) { static_cast<std::uint16_t*>(args.dq.data)[8] = 0xffff; });
  EXPECT_EQ(buffers.run_backward(beyond, c, inputs).outputs.out_of_bounds, 2) << "the gap after a row of dQ";
}

}  // namespace
}  // namespace attest
