// A kernel that sees what a table says: any weights, any denominator, values of any head.
#pragma once
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "attest/gpu/kernel.h"
#include "attest/reference/rounding.h"

namespace attest {

/// Ignores Q and K: weight(b, h, i, j) of each key, 0 for one that is not seen.
class TableKernel : public Kernel {
 public:
  using Weight = std::function<double(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j)>;
  explicit TableKernel(Weight weight, bool offers_lse = true) : weight_(std::move(weight)) {
    capability_.name = "table";
    capability_.offers_lse = offers_lse;
  }
  double hidden = 0;              // added to the denominator of every row that sees something
  double lse_factor = 1;          // of a kernel whose LSE is in another base than it says
  std::int64_t dead_columns = 0;  // how many of O's last columns are left 0

  const Capability& capability() const override { return capability_; }
  Numerics numerics(const Case& c) const override { return flash_numerics(c.problem.dtype); }
  std::optional<std::string> unsupported(const Case&) const override { return std::nullopt; }

  RunReport run(const Case& c, const ForwardArgs& a) override {
    const Problem& p = c.problem;
    const auto address = [&](const TensorRef& t, std::int64_t b, std::int64_t s, std::int64_t h) {
      return static_cast<std::byte*>(t.data) +
             (b * t.batch_stride + s * t.row_stride + h * t.head_stride) * bytes_of(p.dtype);
    };
    std::vector<float> sums(static_cast<std::size_t>(p.headdim_v));
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t h = 0; h < p.nheads; ++h)
        for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
          std::fill(sums.begin(), sums.end(), 0.0f);
          double total = 0;
          for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
            const double w = weight_(b, h, i, j);
            if (w == 0) continue;
            total += w;
            const std::byte* row = address(a.v, b, j, h / (p.nheads / p.nheads_k));
            for (std::size_t d = 0; d < sums.size(); ++d) {
              std::uint32_t bits = 0;
              std::memcpy(&bits, row + d * static_cast<std::size_t>(bytes_of(p.dtype)),
                          static_cast<std::size_t>(bytes_of(p.dtype)));
              if (bits != 0) sums[d] += static_cast<float>(w * decode(p.dtype, bits));
            }
          }
          const double sum = total > 0 ? total + hidden : 0;
          for (std::size_t d = 0; d < sums.size(); ++d) {
            const bool dead = static_cast<std::int64_t>(d) >= p.headdim_v - dead_columns;
            const std::uint32_t bits = encode(p.dtype, sum > 0 && !dead ? sums[d] / sum : 0);
            std::memcpy(address(a.o, b, i, h) + d * static_cast<std::size_t>(bytes_of(p.dtype)), &bits,
                        static_cast<std::size_t>(bytes_of(p.dtype)));
          }
          if (capability_.offers_lse)
            a.lse[(b * p.nheads + h) * p.seqlen_q + i] = static_cast<float>(std::log(sum) * lse_factor);
        }
    return {};
  }

 private:
  Weight weight_;
  Capability capability_;
};

}  // namespace attest
