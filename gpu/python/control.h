// What attest and attest.py share: one stretch of memory, in which the structs of kernel_api.h have their own places
// and every pointer in them is an address of the child's. attest.py has the same struct; `struct_size` tells if it has
// not.
#pragma once
#include <cstddef>
#include <cstdint>

#include "attest/gpu/kernel_api.h"

namespace attest {

inline constexpr std::int64_t most_repeats = 1000;

struct Control {
  std::int64_t struct_size;               // written by either side
  std::int64_t arena_begin, arena_bytes;  // offsets of the tensors with all that is around them, during a run
  attest_capability capability;           // by the child, its strings being the two below
  char name[72], description[264];
  attest_problem problem;
  attest_forward forward;
  attest_backward backward;
  attest_numerics numerics;
  std::int64_t repeats;  // of the measurements that forward() is to make; 0: it computes
  double seconds[most_repeats];
  char message[1 << 16];
};

/// Address space, of which only what is written takes memory.
inline constexpr std::size_t shared_bytes = std::size_t{64} << 30;
inline constexpr std::size_t lists_begin = std::size_t{1} << 20;  // of a problem: varlen_q and the like
inline constexpr std::size_t arena_begin = std::size_t{256} << 20;
static_assert(sizeof(Control) <= lists_begin);

enum class PythonCall : std::int32_t { load, supports, numerics, forward, backward, plan };

}  // namespace attest
