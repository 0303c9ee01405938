// What device code asks of nvcc and of a GPU, for the host's compiler: device headers compile beside a test, and run a
// lane at a time. These headers stand in for those of gpu/ptx whose instructions a lane can be told from; what needs
// all lanes of a warp is declared, and has no definition.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#define ATTEST_DEVICE inline
#define __device__
#define __noinline__

struct LanePlace {
  unsigned x = 0;
};
inline LanePlace threadIdx;

float __shfl_xor_sync(unsigned lanes, float x, int lane);
int __any_sync(unsigned lanes, int x);
void __syncthreads();
void __syncwarp();

namespace attest::ptx {

/// The CTA's window, from address 0 on.
inline std::vector<std::uint8_t> shared_memory;

}  // namespace attest::ptx
