// The arithmetic of emulated kernels: accumulators and exponentials as GPUs have them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attest/problem/splitmix64.h"
#include "emulated_kernel.h"

namespace attest {

/// To float, towards zero.
inline float truncated(double x) {
  const auto nearest = static_cast<float>(x);
  return std::abs(static_cast<double>(nearest)) > std::abs(x) ? std::nextafter(nearest, 0.0f) : nearest;
}

/// Adds a(n) * b(n) to `sum` the way the accumulator does.
template <class A, class B>
float accumulate(Accumulator kind, float sum, std::int64_t count, A a, B b) {
  if (kind == Accumulator::tensor_core) {
    for (std::int64_t first = 0; first < count; first += 16) {
      double exact = sum;
      for (std::int64_t n = first; n < std::min(count, first + 16); ++n) exact += static_cast<double>(a(n)) * b(n);
      sum = truncated(exact);
    }
    return sum;
  }
  for (std::int64_t n = 0; n < count; ++n) {
    if (kind == Accumulator::fused) {
      sum = std::fma(a(n), b(n), sum);
    } else {
      volatile float product = a(n) * b(n);  // volatile: the compiler would fuse it
      sum += product;
    }
  }
  return sum;
}

/// Numbers in -1 to 1, one after another.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : state_(seed) {}
  double next() { return static_cast<double>(next_splitmix64(state_) >> 11) * 0x1p-52 - 1; }

 private:
  std::uint64_t state_;
};

}  // namespace attest
