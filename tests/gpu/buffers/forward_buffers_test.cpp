#include "attest/gpu/forward_buffers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "attest/reference/rounding.h"
#include "writer.h"

namespace attest {
namespace {

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

// What a kernel that computes elsewhere takes there.
TEST(ForwardBuffers, EveryPointerLiesInTheMemoryThatIsTold) {
  Case c = small_case(Dtype::fp16, {Layout::Order::bshd, 3, 1, 1});
  Problem& p = c.problem;
  p.documents = {1, 3};
  p.alibi = p.sink = true;
  p.bias = Bias::hqk;
  p.seqused_k = {2, 3};
  Writer kernel([&](const Case&, const ForwardArgs& a) {
    ASSERT_EQ(a.num_memory_ranges, 10);
    const void* const pointers[] = {a.q.data, a.k.data,    a.v.data,       a.o.data, a.lse,
                                    a.bias,   a.seqused_k, a.alibi_slopes, a.sink,   a.document_ends};
    for (const void* pointer : pointers) {
      int holding = 0;
      for (std::int64_t i = 0; i < a.num_memory_ranges; ++i) {
        const auto* const begin = static_cast<const std::byte*>(a.memory[i].begin);
        const auto* const at = static_cast<const std::byte*>(pointer);
        holding += begin < at && at + 4 < begin + a.memory[i].bytes;
      }
      EXPECT_EQ(holding, 1);
    }
    ASSERT_EQ(a.num_documents, 2);
    EXPECT_EQ(a.document_ends[0], 1);
    EXPECT_EQ(a.document_ends[1], 4);
  });
  Inputs inputs = numbered_inputs(p);
  inputs.bias = Tensor({1, p.nheads, p.seqlen_q, p.seqlen_k});
  inputs.alibi_slopes = Tensor({p.batch, p.nheads, 1, 1});
  inputs.sink = Tensor({1, p.nheads, 1, 1});
  ForwardBuffers buffers;
  buffers.run(kernel, c, inputs);
  EXPECT_EQ(kernel.runs, 1);
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

}  // namespace
}  // namespace attest
