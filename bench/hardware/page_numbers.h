// Numbers of 4 KiB pages that do not follow each other: which pages an experiment walks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace attest::hardware {

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;
inline constexpr std::int64_t kListedPageBytes = 4096;

/// The pages 0 ... count - 1 in random order, `run` consecutive ones at a time; always the same order.
inline std::vector<std::uint32_t> scattered_pages(std::size_t count, std::uint32_t run) {
  std::vector<std::uint32_t> starts(count / run);
  std::iota(starts.begin(), starts.end(), 0U);
  std::shuffle(starts.begin(), starts.end(), std::mt19937(12345));
  std::vector<std::uint32_t> pages;
  pages.reserve(count);
  for (const std::uint32_t start : starts)
    for (std::uint32_t i = 0; i < run; ++i) pages.push_back(start * run + i);
  return pages;
}

/// Of `ranges` ranges that start `apart` bytes from each other, the first pages, `bytes` in all.
inline std::vector<std::uint32_t> first_parts(int ranges, std::int64_t apart, std::int64_t bytes) {
  std::vector<std::uint32_t> pages;
  for (int r = 0; r < ranges; ++r)
    for (std::int64_t at = 0; at < bytes / ranges; at += kListedPageBytes)
      pages.push_back(static_cast<std::uint32_t>((r * apart + at) / kListedPageBytes));
  return pages;
}

/// The pages that belong to partition `home`, in ascending order.
inline std::vector<std::uint32_t> pages_of_home(const std::vector<std::uint8_t>& homes, int home) {
  std::vector<std::uint32_t> pages;
  for (std::size_t p = 0; p < homes.size(); ++p)
    if (homes[p] == home) pages.push_back(static_cast<std::uint32_t>(p));
  return pages;
}

/// All ranges side by side, from their ends to their beginnings: a wave of shrinking_read.
inline std::vector<std::uint32_t> backwards_side_by_side(const std::vector<std::uint32_t>& parts, int ranges) {
  const std::size_t part = parts.size() / static_cast<std::size_t>(ranges);
  std::vector<std::uint32_t> walk;
  for (std::size_t at = part; at-- > 0;)
    for (std::size_t r = 0; r < static_cast<std::size_t>(ranges); ++r) walk.push_back(parts[r * part + at]);
  return walk;
}

}  // namespace attest::hardware
