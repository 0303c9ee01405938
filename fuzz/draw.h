// rapidcheck's generators, drawn one after the other from one Random.
//
// rc::gen::exec reads better, but the context that its operator* looks up is a global of the library (not thread local
// as Debian builds it), and campaigns generate on every thread.
#pragma once
#include <rapidcheck/gen/Numeric.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace attest {

class Draw {
 public:
  explicit Draw(const rc::Random& random) : random_(random) {}

  /// Uniform over [low, high].
  std::int64_t in_range(std::int64_t low, std::int64_t high) {
    return rc::gen::inRange<std::int64_t>(low, high + 1)(random_.split(), rc::kNominalSize).value();
  }

  bool chance(int percent) { return in_range(0, 99) < percent; }

  template <class T, std::size_t N>
  T one_of(const T (&values)[N]) {
    return values[in_range(0, N - 1)];
  }

  /// One of the sorted values up to `limit`, which the first one does not exceed.
  std::int64_t one_up_to(std::span<const std::int64_t> sorted, std::int64_t limit) {
    const auto end = std::upper_bound(sorted.begin(), sorted.end(), limit);
    return sorted[static_cast<std::size_t>(in_range(0, end - sorted.begin() - 1))];
  }

  /// The octave uniform, then the value uniform within it: integers only, so that no maths library has a say.
  /// 1 <= low <= high.
  std::int64_t log_uniform(std::int64_t low, std::int64_t high) {
    const int first = std::bit_width(static_cast<std::uint64_t>(low)) - 1;
    const int last = std::bit_width(static_cast<std::uint64_t>(high)) - 1;
    const std::int64_t octave = std::int64_t{1} << in_range(first, last);
    return in_range(std::max(low, octave), std::min(high, 2 * octave - 1));
  }

 private:
  rc::Random random_;
};

}  // namespace attest
