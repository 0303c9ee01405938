// A struct of kernel_api.h from whoever was compiled with another edition of it.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "attest/gpu/table_kernel.h"
#include "attest/problem/error.h"

namespace attest {

/// What both sides know of it; the rest is 0. `first_bytes`: the size of this ABI's first edition. Throws
/// EnvironmentError for a struct_size below that, or above what any edition has.
template <class Struct>
Struct read_struct(const char* name, const Struct* from, std::size_t first_bytes) {
  constexpr std::size_t longest = 1 << 16;
  const std::size_t size = from->struct_size;
  if (size < first_bytes || size > longest)
    throw EnvironmentError(fmt::format("struct_size of {}: {} is outside {} to {}, so it is of another ABI than {}",
                                       name, size, first_bytes, longest, ATTEST_KERNEL_ABI));
  Struct mine{};
  std::memcpy(&mine, from, std::min(size, sizeof mine));
  return mine;
}

}  // namespace attest
