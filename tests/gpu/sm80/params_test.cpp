// What the launch chooses is what predictions are of: needs no GPU.
#include "attest/sm80/params.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "attest/plan/catalog.h"
#include "attest/sm80/sm80_forward.h"

namespace attest {
namespace {

TensorRef tensor(const Case& c, std::int64_t seqlen, std::int64_t heads, std::int64_t dim) {
  TensorRef t = strides_of(c.layout, seqlen, heads, dim);
  t.data = reinterpret_cast<void*>(std::uintptr_t{1} << 30 | static_cast<std::uintptr_t>(2 * c.layout.base_offset));
  return t;
}

Sm80Choice launched(const Case& c) {
  static constexpr std::int32_t table = 0;
  const Problem& p = c.problem;
  ForwardArgs args;
  args.q = tensor(c, p.seqlen_q, p.nheads, p.headdim), args.k = tensor(c, p.seqlen_k, p.nheads_k, p.headdim);
  args.v = tensor(c, p.seqlen_k, p.nheads_k, p.headdim_v), args.o = tensor(c, p.seqlen_q, p.nheads, p.headdim_v);
  args.page_size = c.layout.page_size;
  if (args.page_size > 0) args.page_table = &table;
  args.num_documents = static_cast<std::int64_t>(p.documents.size());
  const sm80::ForwardParams params = sm80::make_params(c, args, nullptr);
  return {params.tile, params.kind()};
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
                }
}

}  // namespace
}  // namespace attest
