// Loads and stores between shared and global memory.
#pragma once
#include <gtest/gtest.h>

#include "attest/ptx/address.cuh"

namespace attest::ptx {

/// `bytes` or as many zeros; an address that no instruction of that width takes fails the test.
inline void copy_to_shared(int bytes, std::uint32_t shared, const void* global, bool there) {
  const auto n = static_cast<std::size_t>(bytes);
  ASSERT_EQ(shared % n, 0u);
  ASSERT_LE(shared + n, shared_memory.size());
  if (there) {
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(global) % n, 0u);
    std::memcpy(shared_memory.data() + shared, global, n);
  } else {
    std::memset(shared_memory.data() + shared, 0, n);
  }
}

inline void copy_16_if(bool go, std::uint32_t shared, const void* global, bool there) {
  if (go) copy_to_shared(16, shared, global, there);
}

inline void store_shared_16(std::uint32_t shared, std::uint16_t x) { copy_to_shared(2, shared, &x, true); }
void store_shared_32(std::uint32_t shared, std::uint32_t x);

inline void store_pair(float* global, float first, float second) {
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(global) % 8, 0u);
  global[0] = first, global[1] = second;
}

template <int Bytes>
void store_from_shared(void* global, std::uint32_t shared, bool there) {
  if (!there) return;
  ASSERT_EQ(shared % Bytes, 0u);
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(global) % Bytes, 0u);
  ASSERT_LE(shared + Bytes, shared_memory.size());
  std::memcpy(global, shared_memory.data() + shared, Bytes);
}

}  // namespace attest::ptx
