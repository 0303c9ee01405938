// Shared memory as PTX addresses it: 32-bit bytes from the CTA's window.
#pragma once
#include <cstdint>

#define ATTEST_DEVICE __device__ __forceinline__

namespace attest::ptx {

ATTEST_DEVICE std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

}  // namespace attest::ptx
