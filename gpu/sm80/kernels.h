// The kernels by what they are compiled for: host stubs for cudaLaunchKernel(). forward_*.cu and combine.cu hold them.
#pragma once
#include "attest/plan/sm80_tiles.h"

namespace attest::sm80 {

template <Dtype T, Sm80Tile Tile, Sm80Kind Kind>
const void* forward_function();
template <Dtype T>
const void* combine_function();

}  // namespace attest::sm80
