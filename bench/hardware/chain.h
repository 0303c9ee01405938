// A kernel that writes, then reads, then waits, to be launched one after the other.
#pragma once

#include <cstdint>

namespace attest::hardware {

struct ChainLaunch {
  std::int64_t read = 0, write = 0;  ///< bytes, multiples of 16
  int wait_us = 0;                   ///< after both
};

/// Enqueues `chained`: all SMs write the bytes from `to` on, each once, then read those from `from` on.
void launch_chained(const ChainLaunch& launch, const std::uint8_t* from, std::uint8_t* to);

}  // namespace attest::hardware
