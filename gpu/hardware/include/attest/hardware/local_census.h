// How many lines of local memory, or their copies, lie in a set of L2.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace attest::hardware {

/// Finds sets of the L2 partition of SM 0, one after the other, some 70 ms each. Of compute capability 9.0; throws
/// std::runtime_error with CUDA's words where a call of it fails, and where no set is found.
class LocalCensus {
 public:
  static constexpr int most_words = 160;
  /// Words of frames of which a set of an H100 has 3.7, 8.1 and 9.3 lines on average, and of the longer ones often 16.
  static constexpr std::array told_apart{60, 131, 150};

  /// `seed` of the order in which sets are found.
  explicit LocalCensus(std::uint32_t seed);
  LocalCensus(const LocalCensus&) = delete;
  LocalCensus& operator=(const LocalCensus&) = delete;
  ~LocalCensus();

  /// Of a further set: 16 lines of it are read; then all warps of two CTAs of four warps on each SM store so many words
  /// of their local memory, 0 to most_words; and the lines are read again, the last first. As many are gone as lines of
  /// frames, or copies of them, have come into the set, 16 at most. One number for each of `words`. Throws
  /// std::invalid_argument beyond these.
  std::vector<int> next_set(const std::vector<int>& words);

 private:
  struct Gpu;
  std::unique_ptr<Gpu> gpu_;
};

}  // namespace attest::hardware
