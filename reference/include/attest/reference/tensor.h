// A dense float64 tensor: what the reference computes with.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace attest {

/// Row-major over four extents; [batch, seqlen, heads, dim] for q, k, v, o and [batch, nheads, seqlen_q, 1] for lse.
struct Tensor {
  std::array<std::int64_t, 4> extents{};
  std::vector<double> values;

  Tensor() = default;
  explicit Tensor(std::array<std::int64_t, 4> e, double fill = 0)
      : extents(e), values(static_cast<std::size_t>(e[0] * e[1] * e[2] * e[3]), fill) {}

  std::int64_t index(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return ((a * extents[1] + b) * extents[2] + c) * extents[3] + d;
  }
  double& at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) { return values[index(a, b, c, d)]; }
  double at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const { return values[index(a, b, c, d)]; }
};

}  // namespace attest
