#include "mask_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attest/reference/attends.h"

namespace attest {
namespace {

constexpr double longest_side = 460, largest_cell = 28, least_width = 90, least_height = 44, least_block = 2;

}  // namespace

MaskPicture::MaskPicture(const Problem& p, const RecoveredMask& mask, std::int64_t b, std::int64_t h)
    : p_(p), mask_(mask), b_(b), h_(h), rows_(mask.seqlen_q), keys_(mask.seqlen_k) {
  const double scale =
      std::min(largest_cell, longest_side / static_cast<double>(std::max<std::int64_t>({rows_, keys_, 1})));
  width = std::max(least_width, static_cast<double>(keys_) * scale);
  height = std::max(least_height, static_cast<double>(rows_) * scale);
  const auto step = [](std::int64_t length, double side) {
    const auto most = static_cast<std::int64_t>(side / least_block);
    return std::max<std::int64_t>(1, (length + most - 1) / most);
  };
  step_k_ = step(keys_, width);
  step_q_ = step(rows_, height);
}

std::string MaskPicture::cells(bool measured) const {
  std::string out;
  for (std::int64_t i = 0; i < rows_; i += step_q_) {
    std::string colour;
    std::int64_t from = 0;
    for (std::int64_t j = 0; j <= keys_; j += step_k_) {
      const std::string next = j < keys_ ? colour_of(i, j, measured) : "";
      if (next != colour) {
        add_cell(out, colour, i, from, j);
        colour = next;
        from = j;
      }
      if (j < keys_ && j + step_k_ > keys_) add_cell(out, colour, i, from, keys_);
    }
  }
  return out;
}

std::string MaskPicture::marks() const {
  std::string out;
  for (std::int64_t i = 0; i < rows_; i += step_q_) {
    bool marked = false;
    for (std::int64_t r = i; r < std::min(rows_, i + step_q_); ++r)
      marked |= mask_.rows[static_cast<std::size_t>(mask_.row(b_, h_, r))].hidden != 0;
    if (marked)
      out +=
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"5\" height=\"{:.2f}\" fill=\"#111827\"/>\n", width + 3,
                      y_of(static_cast<double>(i)), y_of(static_cast<double>(std::min(rows_, i + step_q_) - i)));
  }
  return out;
}

std::string MaskPicture::colour_of(std::int64_t i0, std::int64_t j0, bool measured) const {
  std::array<std::int64_t, num_pair_states> counts{};
  for (std::int64_t i = i0; i < std::min(rows_, i0 + step_q_); ++i) {
    const std::int64_t r = mask_.row(b_, h_, i);
    const bool absent = mask_.rows[static_cast<std::size_t>(r)].state == MaskRow::State::absent;
    for (std::int64_t j = j0; j < std::min(keys_, j0 + step_k_); ++j) {
      const bool truth = !absent && attends(p_, b_, i, j);
      const PairState state = measured && !absent ? pair_state(mask_, r, j, truth)
                              : truth             ? PairState::seen
                                                  : PairState::unseen;
      ++counts[static_cast<std::size_t>(state)];
    }
  }
  const auto first_wrong = counts.begin() + static_cast<std::ptrdiff_t>(PairState::missing);
  const auto worst = std::max_element(first_wrong, counts.end());
  if (*worst > 0) return std::string(mask_colours[static_cast<std::size_t>(worst - counts.begin())]);
  const auto seen = static_cast<double>(counts[static_cast<std::size_t>(PairState::seen)]);
  if (seen == 0) return "";
  const double share = seen / (seen + static_cast<double>(counts[static_cast<std::size_t>(PairState::unseen)]));
  if (share == 1) return std::string(mask_colours[static_cast<std::size_t>(PairState::seen)]);
  const auto mix = [&](int low, int high) { return static_cast<int>(std::lround(low + share * (high - low))); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(0xd3, 0x4a), mix(0xdb, 0x64), mix(0xea, 0x91));
}

void MaskPicture::add_cell(std::string& out, const std::string& colour, std::int64_t i, std::int64_t from,
                           std::int64_t to) const {
  if (colour.empty() || to <= from) return;
  out +=
      fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
                  x_of(static_cast<double>(from)), y_of(static_cast<double>(i)), x_of(static_cast<double>(to - from)),
                  y_of(static_cast<double>(std::min(rows_, i + step_q_) - i)), colour);
}

}  // namespace attest
