#include "attest/nightly/rank_test.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace attest {
namespace {

// Twice the mean rank of each value of the two together, larger's first: an integer even where ties share ranks.
std::vector<std::size_t> doubled_ranks(std::span<const double> larger, std::span<const double> others) {
  std::vector<double> all(larger.begin(), larger.end());
  all.insert(all.end(), others.begin(), others.end());
  std::vector<double> sorted = all;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::size_t> ranks;
  ranks.reserve(all.size());
  for (const double value : all) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), value);
    ranks.push_back(static_cast<std::size_t>((first - sorted.begin()) + (last - sorted.begin()) + 1));
  }
  return ranks;
}

}  // namespace

double median(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double larger_by_chance(std::span<const double> larger, std::span<const double> others) {
  if (larger.empty() || others.empty()) return 1;
  const std::vector<std::size_t> ranks = doubled_ranks(larger, others);
  const std::size_t chosen = larger.size();
  const std::size_t seen = std::accumulate(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(chosen), 0UL);
  const std::size_t most = chosen * 2 * ranks.size();  // no sum is larger
  // ways[j][s]: in how many ways j of the ranks so far sum to s.
  std::vector<std::vector<double>> ways(chosen + 1, std::vector<double>(most + 1, 0));
  ways[0][0] = 1;
  for (const std::size_t rank : ranks)
    for (std::size_t j = chosen; j-- > 0;)
      for (std::size_t sum = 0; sum + rank <= most; ++sum) ways[j + 1][sum + rank] += ways[j][sum];
  const auto& sums = ways[chosen];
  const double reached = std::accumulate(sums.begin() + static_cast<std::ptrdiff_t>(seen), sums.end(), 0.0);
  return reached / std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace attest
