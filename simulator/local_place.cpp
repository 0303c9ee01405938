#include "local_place.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace attest {

namespace {

std::uint64_t random(std::int64_t n) { return mix(static_cast<std::uint64_t>(n)) >> 32; }

/// At random, of sets whose parts of all lines are spread evenly around their mean: sometimes of two sets the one that
/// gets more. `effective` is (sum of parts)^2 / (sets x sum of parts^2), 1 where all get as much.
std::int64_t uneven_set(std::int64_t number, double effective, int sets) {
  const double of_two = std::sqrt(3 * (1 / effective - 1));  // parts lie between 1 - this and 1 + this of their mean
  const auto at = static_cast<std::uint64_t>(random(number));
  const std::int64_t one = at % static_cast<std::uint64_t>(sets);
  const std::uint64_t again = random(~number);
  if (static_cast<double>(random(static_cast<std::int64_t>(again))) >= of_two * 0x1p32) return one;
  const std::int64_t other = again % static_cast<std::uint64_t>(sets);
  return mix(static_cast<std::uint64_t>(~one)) > mix(static_cast<std::uint64_t>(~other)) ? one : other;
}

}  // namespace

LocalPlace local_place(const LocalFrames& frames, std::int64_t warp, std::int64_t word, int sets,
                       const DeviceSpec& device) {
  const std::int64_t partitions = device.l2_partitions;
  const std::int64_t number = word * frames.warps + warp;
  const auto in_turn_before = [&](std::int64_t n) {
    return static_cast<std::int64_t>(static_cast<double>(n) * std::max(0.0, device.local_memory_sets - 1));
  };
  const std::int64_t turn = in_turn_before(number);
  const bool in_turn = turn != in_turn_before(number + 1);
  const std::int64_t set =
      in_turn ? turn / partitions % sets : uneven_set(number, std::min(1.0, device.local_memory_sets), sets);
  // of lines that follow each other one has each home, in any order: warps of a side are not those of a home
  const std::int64_t of_kind = in_turn ? turn : number - turn;
  const auto any = static_cast<std::int64_t>(random(of_kind / partitions));
  return {static_cast<int>((of_kind + any) % partitions), static_cast<int>(set)};
}

namespace {

/// A set's lines, of home 0 by warps of side 0 and of side 1, then of home 1.
using LinesOfSet = std::array<double, 4>;

/// One set of each of so many groups of those that follow each other: of the two in its middle the one with which lines
/// of each kind are as many as in all groups until then. (Of more to choose from it would be none of the extremes.)
std::vector<std::size_t> stand_for_all(const std::vector<std::size_t>& order, const std::vector<LinesOfSet>& lines,
                                       std::size_t groups) {
  LinesOfSet owed{};  // by what was chosen to the groups until now
  std::vector<std::size_t> sets;
  for (std::size_t group = 0; group < groups; ++group) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(group * order.size() / groups),
               end = order.begin() + static_cast<std::ptrdiff_t>((group + 1) * order.size() / groups);
    for (std::size_t kind = 0; kind < owed.size(); ++kind)
      for (auto set = begin; set != end; ++set) owed[kind] += lines[*set][kind] / static_cast<double>(end - begin);
    const auto off = [&](std::size_t set) {
      double squares = 0;
      for (std::size_t kind = 0; kind < owed.size(); ++kind) squares += std::pow(owed[kind] - lines[set][kind], 2);
      return squares;
    };
    const auto middle = begin + (end - begin - 1) / 2;
    sets.push_back(*std::min_element(middle, std::ranges::next(middle, 2, end),
                                     [&](std::size_t one, std::size_t other) { return off(one) < off(other); }));
    for (std::size_t kind = 0; kind < owed.size(); ++kind) owed[kind] -= lines[sets.back()][kind];
  }
  return sets;
}

}  // namespace

LocalPlaces::LocalPlaces(const LocalFrames& frames, std::int64_t counted,
                         const std::function<int(std::int64_t warp)>& side, const LineSampler& sampler,
                         const DeviceSpec& device)
    : frames_(frames), device_(device), followed_(static_cast<std::size_t>(LineSampler::all_sets(device)), -1) {
  if (frames.words == 0) return;
  std::vector<LinesOfSet> lines(followed_.size());
  for (std::int64_t warp = 0; warp < frames.warps; ++warp)
    for (std::int64_t word = 0; word < counted; ++word) {
      const LocalPlace at = local_place(frames, warp, word, static_cast<int>(followed_.size()), device);
      ++lines[static_cast<std::size_t>(at.set)]
             [2 * static_cast<std::size_t>(at.home) + static_cast<std::size_t>(side(warp))];
    }
  std::vector<std::size_t> by_lines(followed_.size());
  std::iota(by_lines.begin(), by_lines.end(), 0);
  std::ranges::stable_sort(by_lines, {}, [&](std::size_t set) {
    const auto& [home0_side0, home0_side1, home1_side0, home1_side1] = lines[set];
    return std::pair(home0_side0 + home0_side1, home1_side0 + home1_side1);
  });
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(sampler.sets()));
  std::iota(numbers.begin(), numbers.end(), 0);
  // in no order, as what else lies in them has one of its own
  std::ranges::sort(numbers, {}, [](std::int32_t number) { return mix(static_cast<std::uint64_t>(number)); });
  const std::vector<std::size_t> followed = stand_for_all(by_lines, lines, numbers.size());
  for (std::size_t i = 0; i < followed.size(); ++i) followed_[followed[i]] = numbers[i];
}

std::optional<LocalPlace> LocalPlaces::of(std::int64_t warp, std::int64_t word) const {
  LocalPlace place = local_place(frames_, warp, word, static_cast<int>(followed_.size()), device_);
  place.set = followed_[static_cast<std::size_t>(place.set)];
  return place.set < 0 ? std::nullopt : std::optional(place);
}

}  // namespace attest
