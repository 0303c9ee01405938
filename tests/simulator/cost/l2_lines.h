// Lines that tests of L2's model ask for.
#pragma once
#include "attest/simulator/l2_cache.h"

namespace attest {

/// All of a line.
inline CachedLine line(std::uint32_t tag, int home = 0, int set = 0) {
  return {tag, static_cast<std::uint16_t>(set), static_cast<std::uint8_t>(home), 15};
}

}  // namespace attest
