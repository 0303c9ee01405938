// splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
#pragma once
#include <cstdint>

namespace attest {

/// What the state grows by from one number to the next: 2^64 over the golden ratio, odd.
inline constexpr std::uint64_t splitmix64_step = 0x9e3779b97f4a7c15;

/// Its finaliser, a bijection: every bit of the result depends on every bit of x. 0 stays 0.
constexpr std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The number that follows state x; a hash of x.
constexpr std::uint64_t mix(std::uint64_t x) { return scramble(x + splitmix64_step); }

/// The next number, and the state after it.
constexpr std::uint64_t next_splitmix64(std::uint64_t& state) { return scramble(state += splitmix64_step); }

}  // namespace attest
