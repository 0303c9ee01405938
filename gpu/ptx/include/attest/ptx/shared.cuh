// Loads and stores of 2 to 16 bytes between registers, shared and global memory; addresses are multiples of the size.
#pragma once
#include "attest/ptx/address.cuh"

namespace attest::ptx {

ATTEST_DEVICE void store_shared_32(std::uint32_t shared, std::uint32_t x) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(x) : "memory");
}

ATTEST_DEVICE void store_shared_16(std::uint32_t shared, std::uint16_t x) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(shared), "h"(x) : "memory");
}

/// 16 bytes from global to shared memory through registers, or zeros where not `there`, if `go`.
ATTEST_DEVICE void copy_16_if(bool go, std::uint32_t shared, const void* global, bool there) {
  const int yes = go, read = go && there;
  uint4 x;
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; "
      "@p ld.global.v4.b32 {%0, %1, %2, %3}, [%4];}"
      : "=&r"(x.x), "=&r"(x.y), "=&r"(x.z), "=&r"(x.w)
      : "l"(global), "r"(read)
      : "memory");
  asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0; @p st.shared.v4.b32 [%0], {%1, %2, %3, %4};}" ::"r"(shared),
               "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(yes)
               : "memory");
}

/// Two numbers that follow each other in global memory, at once.
ATTEST_DEVICE void store_pair(float* global, float first, float second) {
  *reinterpret_cast<float2*>(global) = {first, second};
}

/// `Bytes` from shared to global memory, where `there`. A predicate and no branch, so that several are under way.
template <int Bytes>
ATTEST_DEVICE void store_from_shared(void* global, std::uint32_t shared, bool there) {
  static_assert(Bytes == 2 || Bytes == 4 || Bytes == 8 || Bytes == 16);
  const int yes = there;
  if constexpr (Bytes == 16) {
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(shared)
                 : "memory");
    asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0; @p st.global.v4.b32 [%0], {%1, %2, %3, %4};}" ::"l"(global),
                 "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(yes)
                 : "memory");
  } else if constexpr (Bytes == 8) {
    uint2 x;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(shared) : "memory");
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; @p st.global.v2.b32 [%0], {%1, %2};}" ::"l"(global), "r"(x.x),
                 "r"(x.y), "r"(yes)
                 : "memory");
  } else if constexpr (Bytes == 4) {
    std::uint32_t x;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(shared) : "memory");
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p st.global.b32 [%0], %1;}" ::"l"(global), "r"(x), "r"(yes)
                 : "memory");
  } else {
    std::uint16_t x;
    asm volatile("ld.shared.b16 %0, [%1];" : "=h"(x) : "r"(shared) : "memory");
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p st.global.b16 [%0], %1;}" ::"l"(global), "h"(x), "r"(yes)
                 : "memory");
  }
}

}  // namespace attest::ptx
