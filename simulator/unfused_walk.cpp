#include "unfused_walk.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "address.h"
#include "attest/simulator/compulsory.h"
#include "attest/simulator/l2_cache.h"
#include "memory_map.h"

namespace attest {
namespace {

constexpr std::int64_t tile = 128;  // queries, keys and columns of O of a product's CTA

/// The queries of a tile's rows, of one head.
struct RowTile {
  std::int64_t member = 0, first_row = 0;  // member: batch entry and query head; rows of all entries are as many apart
  std::int64_t key_member = 0, rows = 0, keys = 0;
};

std::vector<RowTile> row_tiles(const Problem& p) {
  std::vector<RowTile> tiles;
  std::int64_t entry = 0;
  for (const Lengths& n : lengths_of(p))
    for (std::int64_t i = 0; i < n.entries; ++i, ++entry)
      for (std::int64_t head = 0; head < p.nheads && n.keys > 0; ++head)
        for (std::int64_t row = 0; row < n.queries; row += tile)
          tiles.push_back({entry * p.nheads + head, row, entry * p.nheads_k + head / (p.nheads / p.nheads_k),
                           std::min(tile, n.queries - row), n.keys});
  return tiles;
}

class Walk {
 public:
  Walk(const Problem& p, const DeviceSpec& device, const UnfusedKernels& kernels, std::vector<RowTile> tiles,
       int sampling, const MemoryMap& memory)
      : p_(p),
        bytes_(bytes_of(p.dtype)),
        slots_(device.num_sms * kernels.product_ctas_per_sm),
        softmax_rows_(device.num_sms * kernels.softmax_rows_per_sm),
        num_sms_(device.num_sms),
        partitions_(device.l2_partitions),
        tiles_(std::move(tiles)),
        sampler_(device, sampling),
        cache_(static_cast<int>(partitions_), sampler_.sets(), static_cast<int>(device.l2_ways),
               static_cast<int>(device.l2_dirty_ways), sampler_.directory_sets()),
        frames_(static_cast<std::size_t>(slots_)) {
    const std::int64_t queries = p.batch * p.nheads * p.seqlen_q, keys = p.batch * p.nheads_k * p.seqlen_k;
    std::int64_t free = memory.buffers();
    const auto next = [&](std::int64_t bytes) { return std::exchange(free, MemoryMap::next_page(free + bytes)); };
    bases_[0] = next(queries * p.headdim * bytes_);
    bases_[1] = next(keys * p.headdim * bytes_);
    bases_[2] = next(keys * p.headdim_v * bytes_);
    bases_[3] = next(queries * p.headdim_v * bytes_);
    next(queries * std::int64_t{sizeof(float)});  // LSE
    bases_[4] = next(queries * matrix_row_bytes());
    others_ = free + (std::int64_t{1} << 32);
    const std::int64_t warps = kernels.product_warps;
    const std::int64_t words = static_cast<std::int64_t>(kernels.local_bytes) / (warps * LineSampler::line_bytes);
    for (std::int64_t slot = 0; slot < slots_; ++slot)
      for (std::int64_t warp = 0; warp < warps; ++warp)
        for (std::int64_t word = 0; word < words; ++word) {
          const std::int64_t at = memory.word(slot % num_sms_, slot / num_sms_ * warps + warp, word, words);
          sampler_.for_lines(at, at + LineSampler::line_bytes,
                             [&](const CachedLine& line) { frames_[static_cast<std::size_t>(slot)].push_back(line); });
        }
  }

  void leave_dirty_lines(std::int64_t bytes) {
    int side = 0;
    sampler_.for_lines(others_, others_ + bytes,
                       [&](const CachedLine& line) { cache_.write(line, side ^= static_cast<int>(partitions_) - 1); });
  }
  void empty() { cache_.empty(); }
  double read() const { return of_all_sets(cache_.filled_sectors() + cache_.completed_sectors()); }
  double written() const { return of_all_sets(cache_.written_back_sectors()); }
  double dirty() const { return of_all_sets(cache_.dirty_sectors()); }

  void scores() {
    product([](const RowTile& t) { return (t.keys + tile - 1) / tile; },
            [&](const RowTile& t, std::int64_t column, const auto& read) {
              rows(0, t.member * p_.seqlen_q + t.first_row, t.rows, p_.headdim, read);
              rows(1, t.key_member * p_.seqlen_k + column, std::min(tile, t.keys - column), p_.headdim, read);
            },
            [&](const RowTile& t, std::int64_t column, const auto& write) {
              for (std::int64_t row = 0; row < t.rows; ++row)
                part_of_matrix(t, row, column, std::min(t.keys, column + tile), write);
            });
  }
  void softmax() {
    std::vector<std::pair<const RowTile*, std::int64_t>> all;
    for (const RowTile& t : tiles_)
      for (std::int64_t row = 0; row < t.rows; ++row) all.push_back({&t, row});
    constexpr std::int64_t rows_a_cta = 8;
    for (std::size_t first = 0; first < all.size(); first += static_cast<std::size_t>(softmax_rows_))
      for (const bool writes : {false, false, true})
        for (std::size_t i = first; i < std::min(all.size(), first + static_cast<std::size_t>(softmax_rows_)); ++i) {
          const int side = side_of(static_cast<std::int64_t>(i) / rows_a_cta);
          part_of_matrix(*all[i].first, all[i].second, 0, all[i].first->keys, [&](const CachedLine& line) {
            writes ? cache_.write(line, side) : static_cast<void>(cache_.read(line, side));
          });
        }
  }
  void output() {
    product([&](const RowTile&) { return (p_.headdim_v + tile - 1) / tile; },
            [&](const RowTile& t, std::int64_t column, const auto& read) {
              for (std::int64_t row = 0; row < t.rows; ++row) part_of_matrix(t, row, 0, t.keys, read);
              columns_of_rows(2, t.key_member * p_.seqlen_k, t.keys, column, read);
            },
            [&](const RowTile& t, std::int64_t column, const auto& write) {
              columns_of_rows(3, t.member * p_.seqlen_q + t.first_row, t.rows, column, write);
            });
  }

 private:
  double of_all_sets(std::int64_t sectors) const {
    return static_cast<double>(sectors * LineSampler::sector_bytes) / sampler_.share();
  }
  /// Of S and P, whose rows are whole 16 bytes.
  std::int64_t matrix_row_bytes() const { return (p_.seqlen_k + 7) / 8 * 8 * bytes_; }
  int side_of(std::int64_t cta) const { return static_cast<int>(cta % num_sms_ % partitions_); }
  /// Of Q, K, V and O, tensors 0 to 3, whose heads follow each other.
  template <class F>
  void rows(std::size_t tensor, std::int64_t first, std::int64_t n, std::int64_t columns, const F& f) const {
    const std::int64_t row_bytes = columns * bytes_;
    sampler_.for_lines(bases_[tensor] + first * row_bytes, bases_[tensor] + (first + n) * row_bytes, f);
  }
  template <class F>
  void columns_of_rows(std::size_t tensor, std::int64_t first, std::int64_t n, std::int64_t column, const F& f) const {
    if (p_.headdim_v <= tile) return rows(tensor, first, n, p_.headdim_v, f);
    for (std::int64_t row = first; row < first + n; ++row) {
      const std::int64_t at = bases_[tensor] + row * p_.headdim_v * bytes_;
      sampler_.for_lines(at + column * bytes_, at + std::min(p_.headdim_v, column + tile) * bytes_, f);
    }
  }
  template <class F>
  void part_of_matrix(const RowTile& t, std::int64_t row, std::int64_t first, std::int64_t last, const F& f) const {
    const std::int64_t at = bases_[4] + (t.member * p_.seqlen_q + t.first_row + row) * matrix_row_bytes();
    sampler_.for_lines(at + first * bytes_, at + last * bytes_, f);
  }
  /// Calls read(tile, column, f) and write(tile, column, f) of each CTA.
  template <class N, class R, class W>
  void product(const N& num_columns, const R& read, const W& write) {
    struct Cta {
      const RowTile* rows;
      std::int64_t column;
    };
    std::vector<Cta> wave;
    const auto run = [&] {
      const auto each = [&](const auto& f) {
        for (std::size_t slot = 0; slot < wave.size(); ++slot)
          f(wave[slot], slot, side_of(static_cast<std::int64_t>(slot)));
      };
      each([&](const Cta& cta, std::size_t, int side) {
        read(*cta.rows, cta.column, [&](const CachedLine& line) { cache_.read(line, side); });
      });
      each([&](const Cta&, std::size_t slot, int side) {
        for (const CachedLine& line : frames_[slot]) cache_.write(line, side);
      });
      each([&](const Cta& cta, std::size_t, int side) {
        write(*cta.rows, cta.column, [&](const CachedLine& line) { cache_.write(line, side); });
      });
      wave.clear();
    };
    for (const RowTile& t : tiles_)
      for (std::int64_t i = 0; i < num_columns(t); ++i) {
        wave.push_back({&t, i * tile});
        if (static_cast<std::int64_t>(wave.size()) == slots_) run();
      }
    run();
  }

  const Problem& p_;
  const std::int64_t bytes_, slots_, softmax_rows_, num_sms_, partitions_;
  const std::vector<RowTile> tiles_;
  const LineSampler sampler_;
  L2Cache cache_;
  std::vector<std::vector<CachedLine>> frames_;  // by slot
  std::array<std::int64_t, 5> bases_{};          // of Q, K, V, O, and of S and P
  std::int64_t others_ = 0;                      // far from all of it
};

}  // namespace

UnfusedWalk walk_unfused(const Problem& p, const DeviceSpec& device, const UnfusedKernels& kernels,
                         std::int64_t dirty_bytes_at_start, bool empties_between, bool through_ncu) {
  UnfusedWalk walked;
  std::vector<RowTile> tiles = row_tiles(p);
  if (tiles.empty()) return walked;
  const auto bytes = static_cast<double>(bytes_of(p.dtype));
  const auto matrix_bytes = [&](const RowTile& t) { return static_cast<double>(t.rows * t.keys) * bytes; };
  // of both products' frames, which short rows have as long ones
  const double frame_bytes = 2.0 * static_cast<double>(kernels.local_bytes);
  const auto stored_bytes = [&](const std::vector<RowTile>& of) {
    double sum = 0;
    for (const RowTile& t : of) sum += matrix_bytes(t) + frame_bytes;
    return sum;
  };
  // what must be read: Q, and each K or V once; S and P are there from the kernel before, or are in what is walked
  const auto inputs = [&](const std::vector<RowTile>& of) {
    std::array<double, UnfusedCost::kernels> sum{};
    std::set<std::int64_t> key_heads;
    for (const RowTile& t : of) {
      sum[0] += static_cast<double>(t.rows * p.headdim) * bytes;
      if (!key_heads.insert(t.key_member).second) continue;
      sum[0] += static_cast<double>(t.keys * p.headdim) * bytes;
      sum[2] += static_cast<double>(t.keys * p.headdim_v) * bytes;
    }
    return sum;
  };
  const auto all_inputs = inputs(tiles);
  const double all = stored_bytes(tiles), most = 4.0 * static_cast<double>(device.l2_bytes);
  constexpr double most_of_frames = 8e6;  // lines: more than tiles of 128 x 128 have until they are so many bytes
  double part = 0;
  std::size_t n = 0;
  for (; n < tiles.size() && part < most &&
         static_cast<double>(n) * frame_bytes / LineSampler::line_bytes < most_of_frames;
       ++n)
    part += matrix_bytes(tiles[n]);
  tiles.resize(n);
  const auto of_part = inputs(tiles);
  const double scale = all / stored_bytes(tiles);
  constexpr double visits = 5, most_visits = 1e6;  // of S and P by the three kernels; lines
  int sampling = 1;
  while (visits * part / LineSampler::line_bytes / sampling > most_visits) sampling *= 2;
  Walk walk(p, device, kernels, std::move(tiles), sampling, MemoryMap(device, through_ncu));
  walk.leave_dirty_lines(dirty_bytes_at_start);
  double read = walk.read(), written = walk.written(), dirty = walk.dirty();
  for (int kernel = 0; kernel < UnfusedCost::kernels; ++kernel) {
    if (kernel > 0 && empties_between) {
      walk.empty();
      walk.leave_dirty_lines(dirty_bytes_at_start);
      read = walk.read(), written = walk.written(), dirty = walk.dirty();
    }
    if (kernel == 0) walk.scores();
    if (kernel == 1) walk.softmax();
    if (kernel == 2) walk.output();
    const auto i = static_cast<std::size_t>(kernel);
    const double before = dirty;
    walked.read[i] = all_inputs[i] + (walk.read() - read - of_part[i]) * scale;
    dirty = walk.dirty();
    walked.written[i] = (walk.written() - written + dirty - before) * scale + before - dirty;
    read = walk.read(), written = walk.written();
  }
  walked.dirty_bytes_left = dirty;
  return walked;
}

}  // namespace attest
