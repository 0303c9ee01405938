// The keys that a query sees, as one interval: a shortcut past calling attends() for every key.
#pragma once
#include <cstdint>

#include "attest/problem/problem.h"

namespace attest {

/// Keys begin to end - 1; begin = end = 0 where there is none.
struct KeyRange {
  std::int64_t begin = 0, end = 0;

  std::int64_t size() const { return end - begin; }
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

/// The keys j with attends(problem, b, i, j). A test holds it to attends() on every small shape.
KeyRange key_range(const Problem& problem, std::int64_t b, std::int64_t i);

/// The smallest interval that holds the keys of queries first to last - 1.
KeyRange key_range_of_rows(const Problem& problem, std::int64_t b, std::int64_t first, std::int64_t last);

}  // namespace attest
