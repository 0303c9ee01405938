// Where a tensor's bytes lie in memory, and which of their cache lines a sampled L2 follows.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "attest/problem/case.h"
#include "attest/problem/splitmix64.h"
#include "attest/simulator/device.h"
#include "attest/simulator/l2_cache.h"

namespace attest {

/// Byte addresses of one of Q, K, V, O: [batch, rows, heads, columns] in the case's layout.
struct TensorAddress {
  std::int64_t base = 0, batch_stride = 0, row_stride = 0, head_stride = 0;  // bytes
  std::int64_t row_bytes = 0;                                                // of one row of one head
  const std::vector<std::int64_t>* first_row = nullptr;                      // of each batch entry, where packed
  std::int64_t row(std::int64_t batch, std::int64_t head, std::int64_t row_index) const {
    const std::int64_t entry =
        first_row == nullptr ? batch * batch_stride : (*first_row)[static_cast<std::size_t>(batch)] * row_stride;
    return base + entry + head * head_stride + row_index * row_stride;
  }
  std::int64_t end = 0;  // first byte past the tensor
};

inline TensorAddress make_address(const Layout& layout, int element_bytes, std::int64_t base, std::int64_t batch,
                                  std::int64_t rows, std::int64_t heads, std::int64_t columns) {
  const std::int64_t pitch = (columns + layout.row_gap) * element_bytes, padded_rows = rows + layout.seq_gap;
  TensorAddress a;
  a.base = base + layout.base_offset * element_bytes;
  a.row_bytes = columns * element_bytes;
  a.batch_stride = padded_rows * heads * pitch;
  a.row_stride = layout.order == Layout::Order::bshd ? heads * pitch : pitch;
  a.head_stride = layout.order == Layout::Order::bshd ? pitch : padded_rows * pitch;
  a.end = a.base + batch * a.batch_stride;
  return a;
}

/// Maps lines to sets and homes, and keeps one set in `sampling`. The policy of the sets that are kept is exact.
///
/// Measured on an H200 (docs/results/h200-l2.md), cyclic reads of 24/26/28/30/32/34 MiB, the share that misses on later
/// rounds: contiguous ranges 0/0/.00/.30/.70/.98, 4 KiB pages at random .23/.34/.45/.55/.65/.74 as under a random hash,
/// 16 KiB at random .29/.38/.48/.57/.65/.72. That is a cache whose slices each get one or two of the 64 lines of 8 KiB,
/// which have the same set in all of them. Which slices get two changes from round to round, for half of the regions in
/// turn, for half at random, so that a set's lines of a contiguous range vary by one as its conflicts say:
///
///     region = line / 64, round = region / (sets / slices)
///     set in a slice = a permutation of region mod (sets / slices), another one each round
///     slice = a permutation of line mod 64, times slices / 64, turned by 3 * hash(region) + (round or another hash)
///
/// TileWalk.TheHashOfSetsConflictsAsMeasured holds it to these.
class LineSampler {
 public:
  static constexpr int line_bytes = 128, sector_bytes = 32;

  LineSampler(const DeviceSpec& device, int sampling)
      : partitions_(static_cast<int>(device.l2_partitions)),
        slices_(slices_of(device)),
        indices_(static_cast<std::uint32_t>(all_sets(device)) / slices_),
        places_(places(slices_)),
        sampled_(std::size_t{indices_} * slices_, -1),
        kept_(indices_) {
    const std::uint64_t keep_below = ~std::uint64_t{0} / static_cast<std::uint64_t>(sampling);
    for (std::size_t set = 0; set < sampled_.size(); ++set) {
      if (mix(set) > keep_below) continue;
      sampled_[set] = sets_++;
      kept_[set % indices_] |= std::uint64_t{1} << set / indices_;
    }
    share_ = static_cast<double>(sets_) / static_cast<double>(sampled_.size());
  }

  int sets() const { return sets_; }
  double share() const { return share_; }  // of all sets

  /// Calls f(CachedLine) for each sampled line of bytes [first, last).
  template <class F>
  void for_lines(std::int64_t first, std::int64_t last, F&& f) const {
    const std::int64_t end_line = (last + line_bytes - 1) / line_bytes;
    for (std::int64_t line = first / line_bytes; line < end_line;) {
      const Region& region = region_of(line / region_lines);
      const std::int64_t stop = std::min(end_line, (line / region_lines + 1) * region_lines);
      for (; line < stop; ++line) {
        const std::uint32_t slice = slice_of(region, line);
        if ((kept_[region.index] >> slice & 1) == 0) continue;
        const std::int32_t set = sampled_[std::size_t{slice} * indices_ + region.index];
        const std::int64_t begin = std::max(first, line * line_bytes), end = std::min(last, (line + 1) * line_bytes);
        const std::int64_t sectors = (end + sector_bytes - 1) / sector_bytes - begin / sector_bytes;
        f(CachedLine{static_cast<std::uint32_t>(mix(static_cast<std::uint64_t>(line))), static_cast<std::uint16_t>(set),
                     home(line), static_cast<std::uint8_t>(sectors)});
      }
    }
  }

 private:
  static constexpr std::int64_t region_lines = 64;

  /// What the lines of a region have in common.
  struct Region {
    const std::uint8_t* places;  // slice of each of its lines before the turn
    std::uint32_t turn, index;   // by how many slices they are turned, and the set within a slice
  };
  /// Rows that follow each other often lie in one region: the last one is kept.
  const Region& region_of(std::int64_t at) const {
    if (at == region_at_) return region_;
    region_at_ = at;
    // 32 bits of regions are 32 TiB, and their divisions are twice as fast
    const auto region = static_cast<std::uint32_t>(at), round = region / indices_;
    const std::uint64_t turn = mix(region);
    const std::uint32_t doubled = (turn >> 16 & 1) != 0 ? round : static_cast<std::uint32_t>(turn >> 8 & 63);
    const auto of_round = static_cast<std::uint32_t>(mix(round) >> 40);
    region_ = {places_[turn & 255].data(), static_cast<std::uint32_t>(((turn >> 32) * 3 + doubled) % slices_),
               static_cast<std::uint32_t>((std::uint64_t{region} * strides[of_round % 8] + of_round) % indices_)};
    return region_;
  }
  std::uint32_t slice_of(const Region& region, std::int64_t line) const {
    const std::uint32_t turned = region.places[line % region_lines] + region.turn;
    return turned < slices_ ? turned : turned - slices_;
  }
  static constexpr std::array<std::uint32_t, 8> strides{1, 3, 7, 11, 13, 17, 19, 23};
  /// The slices of lines 0 to 63 in 256 permutations of them.
  using Places = std::array<std::array<std::uint8_t, region_lines>, 256>;
  static Places places(std::uint32_t slices) {
    Places t{};
    std::uint64_t state = 0;
    for (auto& p : t) {
      for (std::size_t i = 0; i < p.size(); ++i) p[i] = static_cast<std::uint8_t>(i);
      for (std::size_t i = p.size() - 1; i > 0; --i) std::swap(p[i], p[mix(++state) % (i + 1)]);
      for (std::uint8_t& place : p) place = static_cast<std::uint8_t>(place * slices / region_lines);
    }
    return t;
  }
  static int all_sets(const DeviceSpec& device) {  // of a partition
    return static_cast<int>(device.l2_bytes / (device.l2_partitions * device.l2_ways * line_bytes));
  }
  /// 48 slices of 640 KiB in a partition of the H200, 40 in one of the H100 and of the A100.
  static std::uint32_t slices_of(const DeviceSpec& device) {
    int slices = 48;
    while (all_sets(device) % slices != 0) --slices;
    return static_cast<std::uint32_t>(slices);
  }
  /// Measured on an H200: a page of 4 KiB has one home, by the parity of address bits 12, 13, 15, 17, 19 and a constant
  /// of each 2 MiB.
  std::uint8_t home(std::int64_t line) const {
    if (partitions_ == 1) return 0;
    const auto address = static_cast<std::uint64_t>(line) * line_bytes;
    const std::uint64_t parity =
        (address >> 12) ^ (address >> 13) ^ (address >> 15) ^ (address >> 17) ^ (address >> 19) ^ mix(address >> 21);
    return static_cast<std::uint8_t>(parity & 1);
  }

  int partitions_;
  std::uint32_t slices_, indices_;
  Places places_;
  std::vector<std::int32_t> sampled_;  // number of a set among those that are kept, or -1
  std::vector<std::uint64_t> kept_;    // by set in a slice: a bit a slice in which it is kept
  mutable Region region_{};            // number region_at_
  mutable std::int64_t region_at_ = -1;
  int sets_ = 0;
  double share_ = 1;
};

}  // namespace attest
