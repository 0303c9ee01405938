// Kernels that are right, drawn at random.
#pragma once
#include <cstddef>

#include "emulated_kernel.h"

namespace attest {

template <class Random, class T, std::size_t n>
T pick(Random& random, const T (&choices)[n]) {
  return choices[random() % n];
}

template <class Random>
EmulatedKernel any_kernel(Random& random, Dtype dtype) {
  EmulatedKernel kernel;
  kernel.dtype = dtype;
  kernel.tile = pick(random, {16, 32, 64, 128});
  kernel.last_tile_first = random() % 2;
  kernel.accumulator = pick(random, {Accumulator::fused, Accumulator::rounded, Accumulator::tensor_core});
  kernel.denominator_sums = pick(random, {1, 4});
  kernel.lazy_rescale = random() % 3 == 0;
  kernel.lse_through_base_2 = random() % 3 == 0;
  kernel.noise = random();
  return kernel;
}

}  // namespace attest
