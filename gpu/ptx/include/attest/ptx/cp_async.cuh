// cp.async: copies from global to shared memory that run beside the thread (PTX ISA, Non-bulk copy). A thread's copies
// since its last commit are a group; waiting is for all groups but the youngest `pending`, and tells other threads
// nothing: that takes a barrier.
#pragma once
#include "attest/ptx/address.cuh"

namespace attest::ptx {

/// 16 bytes past L1; both addresses are multiples of 16.
ATTEST_DEVICE void copy_async_16(std::uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

/// `Bytes` of 4, 8 or 16, or as many zeros where `there` is false: then nothing is read.
template <int Bytes>
ATTEST_DEVICE void copy_async_or_zero(std::uint32_t shared, const void* global, bool there) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  const int bytes = there ? Bytes : 0;
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(shared), "l"(global), "r"(bytes), "n"(Bytes)
                 : "memory");
}

/// 16 bytes or zeros likewise, where `go`: a predicate and no branch.
ATTEST_DEVICE void copy_async_16_if(bool go, std::uint32_t shared, const void* global, bool there) {
  const int yes = go, bytes = there ? 16 : 0;
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %3, 0; @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;}" ::"r"(shared),
      "l"(global), "r"(bytes), "r"(yes)
      : "memory");
}

ATTEST_DEVICE void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// The instruction takes an immediate: `pending`, 0 to 7, is a constant once everything is inlined.
template <int Pending = 0>
ATTEST_DEVICE void wait_group(int pending) {
  if constexpr (Pending == 8)
    asm volatile("trap;");
  else if (pending == Pending)
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
  else
    wait_group<Pending + 1>(pending);
}

}  // namespace attest::ptx
