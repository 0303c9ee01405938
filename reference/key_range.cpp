#include "attest/reference/key_range.h"

#include <algorithm>
#include <vector>

#include "attest/reference/attends.h"

namespace attest {
namespace {

KeyRange intersection(KeyRange a, KeyRange b) {
  const KeyRange both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.begin < both.end ? both : KeyRange{};
}

// The positions of the document that covers x.
KeyRange document_around(const Problem& p, std::int64_t x) {
  std::int64_t begin = 0;
  for (const std::int64_t length : p.documents) {
    if (x < begin + length) return {begin, begin + length};
    begin += length;
  }
  return {};
}

}  // namespace

KeyRanges::KeyRanges(KeyRange a, KeyRange b) {
  if (a.size() <= 0) std::swap(a, b);
  if (a.size() <= 0) return;
  if (b.size() > 0 && b.begin < a.begin) std::swap(a, b);
  parts_[0] = a;
  count_ = 1;
  if (b.size() <= 0) return;
  if (b.begin <= a.end) {
    parts_[0].end = std::max(a.end, b.end);
  } else {
    parts_[1] = b;
    count_ = 2;
  }
}

bool KeyRanges::contains(std::int64_t j) const {
  return std::any_of(begin(), end(), [j](const KeyRange& part) { return part.begin <= j && j < part.end; });
}

KeyRanges key_ranges(const Problem& p, std::int64_t b, std::int64_t i) {
  KeyRange all{0, keys_of(p, b)};
  if (!p.documents.empty()) all = intersection(all, document_around(p, i));
  const std::int64_t diagonal = i + diagonal_offset(p, b);
  KeyRange window = all;
  if (p.causal != Causal::none) window.end = std::min(window.end, diagonal + 1);
  if (p.window_right >= 0) window.end = std::min(window.end, diagonal + p.window_right + 1);
  if (p.window_left >= 0) window.begin = std::max(window.begin, diagonal - p.window_left);
  return {intersection(all, {0, p.prefix}), window};
}

KeyRanges key_ranges_of_rows(const Problem& p, std::int64_t b, std::int64_t first, std::int64_t last) {
  std::vector<KeyRange> parts;
  for (std::int64_t i = first; i < last; ++i)
    for (const KeyRange& part : key_ranges(p, b, i))
      if (parts.empty() || !(parts.back() == part)) parts.push_back(part);
  if (parts.empty()) return {};
  std::sort(parts.begin(), parts.end(), [](const KeyRange& x, const KeyRange& y) { return x.begin < y.begin; });
  std::int64_t end = parts.front().end, widest = 0;
  KeyRange gap{end, end};
  for (const KeyRange& part : parts) {
    if (part.begin - end > widest) widest = part.begin - end, gap = {end, part.begin};
    end = std::max(end, part.end);
  }
  if (widest == 0) return {{parts.front().begin, end}};
  return {{parts.front().begin, gap.begin}, {gap.end, end}};
}

}  // namespace attest
