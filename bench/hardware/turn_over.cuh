// How probes empty L2 of what they read.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "attest/hardware/device.h"

namespace attest::hardware {

static __global__ void probe_turn_over(std::uint8_t* buffer, std::int64_t bytes) {
  for (std::int64_t i = (blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x) * 16; i < bytes;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x * 16)
    *reinterpret_cast<uint4*>(buffer + i) = uint4{1, 2, 3, 4};
}

/// Bytes that turn L2 over: four times an H200's 60 MiB.
inline constexpr std::int64_t kTurnOverBytes = std::int64_t{256} << 20;

/// Writes kTurnOverBytes of `other`, which drives out of L2 what it held.
inline void turn_over(const DeviceArray<std::uint8_t>& other) {
  probe_turn_over<<<1024, 256>>>(other.data(), kTurnOverBytes);
  check(cudaGetLastError());
}

}  // namespace attest::hardware
