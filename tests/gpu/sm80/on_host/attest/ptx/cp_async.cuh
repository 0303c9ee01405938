// cp.async, done at once: what a copy leaves behind, not when.
#pragma once
#include "attest/ptx/shared.cuh"

namespace attest::ptx {

inline void copy_async_16_if(bool go, std::uint32_t shared, const void* global, bool there) {
  copy_16_if(go, shared, global, there);
}

template <int Bytes>
void copy_async_or_zero(std::uint32_t shared, const void* global, bool there) {
  copy_to_shared(Bytes, shared, global, there);
}

inline void commit_group() {}
inline void wait_group(int /*pending*/) {}

}  // namespace attest::ptx
