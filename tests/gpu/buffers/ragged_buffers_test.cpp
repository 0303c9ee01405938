// Buffers of cases with lengths, pages and a bias.
#include <gtest/gtest.h>

#include <cmath>

#include "attest/gpu/forward_buffers.h"
#include "writer.h"

namespace attest {
namespace {

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

}  // namespace
}  // namespace attest
