// Where a tensor's bytes lie in memory, and which of their cache lines a sampled L2 follows.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "attest/problem/case.h"
#include "attest/problem/splitmix64.h"
#include "attest/simulator/device.h"
#include "attest/simulator/l2_cache.h"
#include "l2_hash.h"
#include "set_choice.h"

namespace attest {

/// Byte addresses of one of Q, K, V, O: [batch, rows, heads, columns] in the case's layout.
struct TensorAddress {
  std::int64_t base = 0, batch_stride = 0, row_stride = 0, head_stride = 0;  // bytes
  std::int64_t row_bytes = 0;                                                // of one row of one head
  const std::vector<std::int64_t>* first_row = nullptr;                      // of each batch entry, where packed
  int packed_heads = 1;  // of the plan, where `head` counts packs of them, whose rows alternate
  std::int64_t row(std::int64_t batch, std::int64_t head, std::int64_t row_index) const {
    const std::int64_t entry =
        first_row == nullptr ? batch * batch_stride : (*first_row)[static_cast<std::size_t>(batch)] * row_stride;
    if (packed_heads == 1) return base + entry + head * head_stride + row_index * row_stride;
    const std::int64_t of_pack = head * packed_heads + row_index % packed_heads;
    return base + entry + of_pack * head_stride + row_index / packed_heads * row_stride;
  }
  /// Bytes between a row and its neighbour in memory, of the same head or, where there are others, of the next.
  std::int64_t gap(std::int64_t heads) const {
    return (heads > 1 ? std::min(head_stride, row_stride) : row_stride) - row_bytes;
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

/// Maps lines to sets and homes, and keeps one set in `sampling`. The policy of the sets that are kept is exact, but
/// that one set of a directory stands for others (SetChoice).
///
/// Where the GPU's own hash is known (L2Hash) lines fall as it has them, by their place in memory (memory_map.h). Other
/// GPUs have one that conflicts about as often as an H200's.
///
/// Measured on an H200 (docs/results/h200-l2.md), the share of cyclic reads that misses: a contiguous range conflicts
/// only when the cache is full (0 at 28 MiB of 30, .70 at 32); scattered pages of 4 KiB as under a random hash (.23 at
/// 24 MiB); chunks of 32 to 512 KiB more (.28 to .36); the first 6 of each 8 MiB, four times, in between (.10), and so
/// do rows of a head with others between them (.11 to .20). So what fills sets evenly is a range of some MiB as a
/// whole, and a part of it is a random half of them:
///
///     region   64 lines, which have one place in every slice: one or two a slice (64 lines, 48 slices)
///     block    8 regions, which share indices_ / 64 places in turn; the turn goes on from range to range
///     range    64 blocks, 4 MiB: each has its own order in which blocks take their places
///
///     slice = a permutation of line mod 64, times slices / 64, turned by what the place has already had of regions
///
/// TileWalk.TheHashOfSetsConflictsAsMeasured holds both to these.
class LineSampler {
 public:
  static constexpr int line_bytes = 128, sector_bytes = 32;
  static constexpr std::int64_t region_lines = 64;

  LineSampler(const DeviceSpec& device, int sampling)
      : LineSampler(device, sampling,
                    L2Hash::known(device) ? std::optional(SetChoice(L2Hash(device), sampling)) : std::nullopt) {}
  /// Of a known hash the sets of that choice.
  LineSampler(const DeviceSpec& device, const SetChoice& choice) : LineSampler(device, 0, choice) {}

  /// Of a partition, into which lines fall.
  static int all_sets(const DeviceSpec& device) {
    if (L2Hash::known(device)) return static_cast<int>(L2Hash::slices(device) * L2Hash::sets_a_slice);
    return static_cast<int>(device.l2_bytes / (device.l2_partitions * device.l2_ways * line_bytes));
  }
  /// Of all sets of both partitions, of a known hash, the one into which the line at that address falls.
  std::size_t whole_set(std::int64_t address) const {
    const L2Hash::Place place = placed(address / line_bytes);
    return (std::size_t{place.home} * slices_ + place.slice) * indices_ + place.index;
  }
  int sets() const { return sets_; }                      // that are followed
  double share() const { return share_; }                 // of all sets
  int directory_sets() const { return directory_sets_; }  // of a partition's directory, that follow what these have

  /// Calls f(CachedLine) for each sampled line of bytes [first, last) of memory.
  template <class F>
  void for_lines(std::int64_t first, std::int64_t last, F&& f) const {
    const std::int64_t end_line = (last + line_bytes - 1) / line_bytes;
    const auto follow = [&](std::int64_t line, std::uint32_t tag, std::int32_t set, std::uint8_t home, bool paired,
                            std::uint32_t directory) {
      const std::int64_t begin = std::max(first, line * line_bytes), end = std::min(last, (line + 1) * line_bytes);
      const auto from = begin % line_bytes / sector_bytes, to = (end - 1) % line_bytes / sector_bytes;
      f(CachedLine{tag, static_cast<std::uint16_t>(set), home, static_cast<std::uint8_t>((2U << to) - (1U << from)), 0,
                   0, paired, static_cast<std::uint8_t>(begin % sector_bytes / 2),
                   static_cast<std::uint8_t>((-end & (sector_bytes - 1)) / 2), static_cast<std::uint16_t>(directory)});
    };
    for (std::int64_t line = first / line_bytes; hash_ && line < end_line; ++line) {
      const L2Hash::Place place = placed(line);
      const std::int32_t set = sampled_[std::size_t{place.slice} * indices_ + place.index];
      if (set < 0) continue;
      const auto number = static_cast<std::uint64_t>(line);
      follow(
          line,
          (static_cast<std::uint32_t>(mix(number & ~std::uint64_t{5})) & ~3U) | (number >> 2 & 1) | (number & 1) << 1,
          set, place.home, place.slice < hash_->paired_slices(), directory_of(place));
    }
    for (std::int64_t line = first / line_bytes; !hash_ && line < end_line;) {
      const Region& region = region_of(line / region_lines);
      const std::int64_t stop = std::min(end_line, (line / region_lines + 1) * region_lines);
      for (; line < stop; ++line) {
        const std::uint32_t slice = slice_of(region, line);
        if ((kept_[region.index] >> slice & 1) == 0) continue;
        follow(line, static_cast<std::uint32_t>(mix(static_cast<std::uint64_t>(line))),
               sampled_[std::size_t{slice} * indices_ + region.index], home(line), false, CachedLine::not_noted);
      }
    }
  }

 private:
  static constexpr std::uint32_t block_regions = 8;

  LineSampler(const DeviceSpec& device, int sampling, const std::optional<SetChoice>& choice)
      : partitions_(static_cast<int>(device.l2_partitions)),
        hash_(L2Hash::known(device) ? std::optional<L2Hash>(device) : std::nullopt),
        slices_(hash_ ? hash_->slices() : static_cast<std::uint32_t>(device.l2_slices_per_partition)),
        indices_(static_cast<std::uint32_t>(all_sets(device)) / slices_),
        blocks_(std::min(64U, indices_ & (~indices_ + 1))),
        block_bits_(static_cast<std::uint32_t>(std::countr_zero(blocks_))),
        period_(slices_ / std::gcd(slices_, static_cast<std::uint32_t>(region_lines))),
        sampled_(std::size_t{indices_} * slices_, -1) {
    if (hash_)
      keep(*choice);
    else
      keep(sampling);
    share_ = static_cast<double>(sets_) / static_cast<double>(sampled_.size());
  }

  void keep(int sampling) {
    places_ = places(slices_);
    for (std::size_t block = 0; block < blocks_; ++block)
      turn_of_block_[block] = static_cast<std::uint32_t>(mix(block) % period_);
    kept_.resize(indices_);
    const std::uint64_t keep_below = ~std::uint64_t{0} / static_cast<std::uint64_t>(sampling);
    for (std::uint32_t slice = 0; slice < slices_; ++slice)
      for (std::uint32_t index = 0; index < indices_; ++index) {
        if (mix(std::size_t{slice} * indices_ + index) > keep_below) continue;
        sampled_[std::size_t{slice} * indices_ + index] = sets_++;
        kept_[index] |= std::uint64_t{1} << slice;
      }
  }

  void keep(const SetChoice& choice) {
    constexpr unsigned bits = L2Hash::directory_set_bits;
    free_bits_ = choice.free_bits();
    directory_of_slice_.assign(slices_, 0);
    for (const auto& [first, n, value] : choice.slices()) {
      for (std::uint32_t upper = 0; upper < indices_; upper += L2Hash::sets_a_group)
        for (std::uint32_t low = 0; low < 1U << free_bits_; ++low)
          for (std::uint32_t slice = first; slice < first + n; ++slice)
            for (std::uint32_t line = 0; line < L2Hash::sets_a_group >> bits; ++line)
              sampled_[std::size_t{slice} * indices_ + upper + (line << bits | value << free_bits_ | low)] = sets_++;
      for (std::uint32_t slice = first; slice < first + n; ++slice) {
        directory_of_slice_[slice] = static_cast<std::uint32_t>(directory_sets_);
        directory_sets_ += 1 << (L2Hash::directory_segment_bits + free_bits_);
      }
    }
  }
  std::uint32_t directory_of(const L2Hash::Place& place) const {
    return directory_of_slice_[place.slice] + (place.directory >> L2Hash::directory_set_bits << free_bits_) +
           (place.directory & ((1U << free_bits_) - 1));
  }

  /// By the hash. Rows that follow each other often lie in one block: the last one is kept.
  L2Hash::Place placed(std::int64_t line) const {
    const auto at = static_cast<std::uint64_t>(line);
    if (at / L2Hash::block_lines != hash_block_at_) {
      hash_block_at_ = at / L2Hash::block_lines;
      hash_block_ = hash_->block(hash_block_at_);
    }
    return hash_->place(hash_block_, static_cast<std::uint32_t>(at % L2Hash::block_lines));
  }

  /// What the lines of a region have in common.
  struct Region {
    const std::uint8_t* places;  // slice of each of its lines before the turn
    std::uint32_t turn, index;   // by how many slices they are turned, and the set within a slice
  };
  /// Rows that follow each other often lie in one region: the last one is kept.
  const Region& region_of(std::int64_t at) const {
    if (at == region_at_) return region_;
    region_at_ = at;
    // 32 bits of regions are 32 TiB, and their divisions take half as long: walks of keys that are read once wait for
    // them
    const auto region = static_cast<std::uint32_t>(at), at_block = region / block_regions;
    const std::uint32_t range = at_block >> block_bits_, block = at_block & (blocks_ - 1);
    const auto key = static_cast<std::uint32_t>(mix(range) >> 40);
    const std::uint32_t placed = (block * (2 * (key & 31) + 1) + (key >> 8)) & (blocks_ - 1);
    const std::uint32_t share = indices_ / blocks_, before = range * block_regions + region % block_regions;
    const std::uint64_t turn = mix(region);
    const std::uint32_t turns = static_cast<std::uint32_t>(turn >> 32) % slices_ * period_;
    region_ = {
        places_[turn & 255].data(),
        (turns + turn_of_block_[placed] + before / share) % slices_,
        placed * share + before % share,
    };
    return region_;
  }
  std::uint32_t slice_of(const Region& region, std::int64_t line) const {
    const std::uint32_t turned = region.places[line % region_lines] + region.turn;
    return turned < slices_ ? turned : turned - slices_;
  }
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
  std::optional<L2Hash> hash_;
  std::uint32_t slices_, indices_;
  std::uint32_t blocks_, block_bits_;  // of a range: as many as divide the indices, a power of two
  std::uint32_t period_;               // of slices that get two lines: turns by it leave them where they are
  std::array<std::uint32_t, 64> turn_of_block_{};
  Places places_{};
  std::vector<std::int32_t> sampled_;   // number of a set among those that are kept, or -1
  std::vector<std::uint64_t> kept_;     // by set in a slice: a bit a slice in which it is kept
  mutable L2Hash::Block hash_block_{};  // number hash_block_at_
  mutable std::uint64_t hash_block_at_ = ~std::uint64_t{0};
  mutable Region region_{};  // number region_at_
  mutable std::int64_t region_at_ = -1;
  unsigned free_bits_ = 0;  // of the four lowest of a set's number, in which the sets that are followed differ
  std::vector<std::uint32_t> directory_of_slice_;  // number of its first directory set among those that are followed
  int sets_ = 0, directory_sets_ = 0;
  double share_ = 1;
};

}  // namespace attest
