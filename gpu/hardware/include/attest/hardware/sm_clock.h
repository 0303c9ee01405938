// An SM's clock as the global timer has it.
#pragma once

#include <cstdint>

#include "attest/hardware/device.h"

namespace attest::hardware {

/// Of an SM's clock, each as the global timer moves on to the time beside it.
struct ClockReadings {
  static constexpr int count = 32;
  long long cycles[count];
  std::uint64_t ns[count];

  double mean_cycles(long long from) const { return mean(cycles, from); }
  double mean_ns(std::uint64_t from) const { return mean(ns, from); }

 private:
  template <class T>
  static double mean(const T (&all)[count], T from) {
    double sum = 0;
    for (const T x : all) sum += static_cast<double>(static_cast<long long>(x - from));  // exact, also before `from`
    return sum / count;
  }
};

/// An SM's clock in cycles a ns, from readings at two times.
inline double cycles_per_ns(const ClockReadings& before, const ClockReadings& after) {
  const long long cycles = before.cycles[0];
  const std::uint64_t ns = before.ns[0];
  return (after.mean_cycles(cycles) - before.mean_cycles(cycles)) / (after.mean_ns(ns) - before.mean_ns(ns));
}

#ifdef __CUDACC__
/// By one thread.
__device__ inline void read_clock(ClockReadings& of_sm) {
  for (int i = 0; i < ClockReadings::count; ++i) {
    const std::uint64_t before = global_time_ns();
    std::uint64_t now = before;
    while (now == before) now = global_time_ns();
    of_sm.cycles[i] = clock64();
    of_sm.ns[i] = now;
  }
}
#endif

}  // namespace attest::hardware
