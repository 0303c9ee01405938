// The keys that a query sees, as intervals: a shortcut past calling attends() for every key.
#pragma once
#include <array>
#include <cstdint>

#include "attest/problem/problem.h"

namespace attest {

/// Keys begin to end - 1; begin = end = 0 where there is none.
struct KeyRange {
  std::int64_t begin = 0, end = 0;

  std::int64_t size() const { return end - begin; }
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

/// Up to two intervals, ascending, none of them empty, with at least one key between them: what a prefix and a window
/// leave of a document.
class KeyRanges {
 public:
  KeyRanges() = default;
  /// The keys in either interval; empty ones count for nothing, and intervals that touch become one.
  KeyRanges(KeyRange a, KeyRange b = {});

  const KeyRange* begin() const { return parts_.data(); }
  const KeyRange* end() const { return parts_.data() + count_; }
  bool empty() const { return count_ == 0; }
  std::int64_t size() const { return parts_[0].size() + parts_[1].size(); }  // keys
  bool contains(std::int64_t j) const;
  friend bool operator==(const KeyRanges&, const KeyRanges&) = default;

 private:
  std::array<KeyRange, 2> parts_{};
  int count_ = 0;
};

/// The keys j with attends(problem, b, i, j). A test holds it to attends() on every small shape.
KeyRanges key_ranges(const Problem& problem, std::int64_t b, std::int64_t i);

/// Two intervals at most that hold the keys of queries first to last - 1, and begin and end with such keys: between
/// them lies the widest run of keys that none of these queries sees.
KeyRanges key_ranges_of_rows(const Problem& problem, std::int64_t b, std::int64_t first, std::int64_t last);

}  // namespace attest
