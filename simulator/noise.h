// Numbers that look random and are the same on every machine, and what is known of random ones.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace attest {

/// Of bits at random: a number in [0, 1), and from it one with a mean of 0 and a standard deviation of 1.
inline double in_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }
inline double deviate(double u) { return 3.4641016151377544 * (u - 0.5); }

/// One such number after the other: others in each of the launches of a call.
class Noise {
 public:
  explicit Noise(std::uint64_t seed = 1, std::uint64_t launch = 0) : launch_(launch), state_(seed + 7919 * launch) {}
  std::uint64_t launch() const { return launch_; }
  double in_unit() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return attest::in_unit(state_);
  }
  double operator()() { return deviate(in_unit()); }

 private:
  std::uint64_t launch_, state_;
};

/// Of n normal variates, by how many deviations the largest exceeds their mean. std::out_of_range beyond 16, which is
/// as many warps as a plan may have.
inline double expected_largest_normal(int n) {
  static const auto of = [] {  // asked for thousands of times
    constexpr double step = 1.0 / 64, end = 8;
    std::array<double, 17> sums{};
    for (double x = step / 2; x < end; x += step) {
      const double above = std::erfc(x / std::sqrt(2.0)) / 2;
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += step * (1 - std::pow(1 - above, i) - std::pow(above, i));
    }
    return sums;
  }();
  return of.at(static_cast<std::size_t>(n));
}

/// Of n exponential variates with a mean of 1, the largest's mean and standard deviation.
struct LargestExponential {
  double mean = 0, deviation = 0;
};
inline LargestExponential expected_largest_exponential(int n) {
  double mean = 0, variance = 0;  // of n the first is over after 1 / n, and n - 1 are left as if they had just begun
  for (int left = n; left > 0; --left) mean += 1.0 / left, variance += 1.0 / left / left;
  return {mean, std::sqrt(variance)};
}

}  // namespace attest
