#include "set_choice.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "attest/problem/splitmix64.h"

namespace attest {
namespace {

/// What lies in sets that have n and more of it, by n from 1; of several things one behind the other.
using Tail = std::vector<double>;

/// Squares of what is followed beyond the part that it should be, each over that: what is rare counts as what is not.
double distance(const Tail& all, const Tail& followed, double share) {
  double sum = 0;
  for (std::size_t n = 0; n < all.size(); ++n) {
    const double beyond = followed[n] - share * all[n];
    sum += all[n] > 0 ? beyond * beyond / all[n] : 0;
  }
  return sum;
}

}  // namespace

SetChoice::SetChoice(const L2Hash& hash, int sampling) : all_slices_(hash.slices()) {
  constexpr unsigned bits = L2Hash::directory_set_bits;
  const auto one_in = static_cast<unsigned>(sampling);
  const unsigned fixed = std::min(bits, static_cast<unsigned>(std::bit_width(one_in)) - 1);
  free_bits_ = bits - fixed;
  const std::uint32_t wanted = std::max(1U, ((all_slices_ << fixed) + one_in / 2) / one_in);
  for (std::uint32_t slice = 0; slice < all_slices_; slice += slices_.back().count) {
    const auto at = static_cast<std::uint32_t>(slices_.size());
    slices_.push_back({slice, slice < hash.paired_slices() ? 2U : 1U, (3 * at + 2 * (at >> 2)) % values()});
  }
  std::ranges::sort(slices_, {}, [](const Slices& s) { return mix(s.first); });
  std::size_t enough = 0;
  for (std::uint32_t slices = 0; slices < wanted && enough < slices_.size(); ++enough) slices += slices_[enough].count;
  slices_.resize(enough);
  std::ranges::sort(slices_, {}, &Slices::first);  // pairs first: their sets' numbers are multiples of eight
}

void SetChoice::match(const std::vector<std::vector<int>>& counts) {
  Tail all;
  std::vector<Tail> of(std::size_t{all_slices_} * values());
  for (const std::vector<int>& numbers : counts) {
    const std::size_t before = all.size(), most = before + static_cast<std::size_t>(std::ranges::max(numbers));
    all.resize(most);
    for (Tail& tail : of) tail.resize(most);
    for (std::size_t set = 0; set < numbers.size(); ++set) {
      const std::size_t slice = set / L2Hash::sets_a_slice % all_slices_,
                        value = (set % L2Hash::sets_a_slice & ((1U << L2Hash::directory_set_bits) - 1)) >> free_bits_;
      const auto add = [&](Tail& to) {
        for (int n = 0; n < numbers[set]; ++n) to[before + static_cast<std::size_t>(n)] += numbers[set];
      };
      add(all), add(of[slice * values() + value]);
    }
  }
  const std::size_t most = all.size();
  std::size_t followed_slices = 0;
  Tail followed(most);
  const auto add = [&](const Slices& s, double sign) {
    for (std::uint32_t slice = s.first; slice < s.first + s.count; ++slice)
      for (std::size_t n = 0; n < most; ++n) followed[n] += sign * of[std::size_t{slice} * values() + s.value][n];
  };
  for (const Slices& s : slices_) add(s, 1), followed_slices += s.count;
  const double share = static_cast<double>(followed_slices) / (static_cast<double>(all_slices_) * values());
  double least = distance(all, followed, share);
  for (bool better = true; better;) {
    better = false;
    for (Slices& s : slices_)
      for (std::uint32_t value = 0; value < values(); ++value) {
        const std::uint32_t before = s.value;
        add(s, -1), s.value = value, add(s, 1);
        const double now = distance(all, followed, share);
        if (now < least * (1 - 1e-9)) {
          least = now, better = true;
        } else {
          add(s, -1), s.value = before, add(s, 1);
        }
      }
  }
}

}  // namespace attest
