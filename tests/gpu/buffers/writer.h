// A kernel that writes what a test asks of it, and the case and inputs it is run on.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "attest/gpu/forward_buffers.h"
#include "attest/reference/rounding.h"

namespace attest {

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

inline Case small_case(Dtype dtype, Layout layout) {
  Case c;
  c.problem = {2, 2, 1, 4, 3, 8, 5, dtype, {}, Causal::none, -1, -1};
  c.layout = layout;
  return c;
}

inline Inputs numbered_inputs(const Problem& p) {
  Inputs inputs{Tensor({p.batch, p.seqlen_q, p.nheads, p.headdim}),
                Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim}),
                Tensor({p.batch, p.seqlen_k, p.nheads_k, p.headdim_v})};
  double next = 1;
  for (Tensor* tensor : {&inputs.q, &inputs.k, &inputs.v})
    for (double& value : tensor->values) value = std::fmod(next++, 128);
  return inputs;
}

}  // namespace attest
