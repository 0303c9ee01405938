// How many different things there are.
#pragma once
#include <algorithm>
#include <iterator>
#include <span>

namespace attest {

/// How many different values there are, which are sorted on the way.
template <class T>
int count_distinct(std::span<T> values) {
  std::sort(values.begin(), values.end());
  return static_cast<int>(std::distance(values.begin(), std::unique(values.begin(), values.end())));
}

}  // namespace attest
