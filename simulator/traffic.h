// What CTAs read and write, through a sampled L2, and what came of it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "attest/simulator/l2_cache.h"
#include "attest/simulator/tile_walk.h"
#include "box_beyond.h"
#include "coalescer.h"
#include "line_requests.h"
#include "memory_map.h"
#include "schedule.h"

namespace attest {

/// A sampled line of K or V, and whether a CTA of this call has read these sectors before.
struct TileLine {
  CachedLine line;
  bool seen = false;
};

/// The sampled lines of one key tile, found when it is first read.
struct TileLines {
  std::vector<TileLine> k, v;
  Coalescer::Tile asked;  // no requests: not read yet
  double loaded = 0;      // when the last CTA that waits for its loads had them
};

/// All key tiles of one key head. Of the longest heads a walk visits few, so they are made in blocks, where it comes;
/// of the shortest, of which there are the most, a block is all tiles that there are.
class HeadLines {
 public:
  explicit HeadLines(std::int64_t num_tiles) : num_tiles_(static_cast<std::size_t>(num_tiles)) {}
  TileLines& tile(int index) {
    const auto block = static_cast<std::size_t>(index) / block_tiles;
    if (block >= blocks_.size()) blocks_.resize(block + 1);
    if (blocks_[block].empty()) blocks_[block].resize(std::min(block_tiles, num_tiles_ - block * block_tiles));
    return blocks_[block][static_cast<std::size_t>(index) % block_tiles];
  }
  void forget_asked() {
    for (std::vector<TileLines>& block : blocks_)
      for (TileLines& tile : block) {
        tile.asked = {}, tile.loaded = 0;
        for (std::vector<TileLine>* of : {&tile.k, &tile.v})
          for (TileLine& line : *of) line.seen = false;
      }
  }

 private:
  static constexpr std::size_t block_tiles = 64;
  std::size_t num_tiles_;
  std::vector<std::vector<TileLines>> blocks_;
};

/// A store or a load of a sampled line of local memory by a warp of its slot (of 256 at most: 16 CTAs of 16), and what
/// part of its key tile the warp has done by then.
struct SpilledLine {
  CachedLine line;
  SpillUse::Kind kind;
  std::uint8_t warp;
  float at;
};

/// As SpillUses.
struct SpilledLines {
  std::vector<SpilledLine> whole, masked, first_whole, first_masked, begin, end;
};

/// A CTA at a time, or a cluster of them.
struct Slot {
  int sm = 0;
  int number = 0;  // of its SM's
  int side = 0;
  int gpc = 0;
  int position = 0;  // in the walk
  KeyWalk walk;
  int cut = 0;              // its walk's key tiles that are not simulated
  double since = 0;         // when its CTA began
  double left_out = 0;      // cycles of the tiles that were cut off it and those before
  std::int64_t begun = -1;  // CTAs that began before its own; -1: it has none
  bool fresh = true;        // Q is yet to be read
  int asked = -1;           // the first tile of its CTA's last event; -1: none yet
  std::int64_t draws = 0;   // of its SM's noise, one for each event with key tiles of all its CTAs
  double ahead = 0;         // of its SM's other CTAs, in cycles, where they keep in step
  Task at{};
  std::int64_t rows = 0;  // queries of its tiles
  std::int64_t next = 0;  // task, of a static schedule
  HeadLines* lines = nullptr;
  // Its local memory: what CTAs do with it in order, words of a CTA's life where no order is known, of one that comes
  // to a key tile without a mask, of a persistent CTA, which are stored but once, and of its producer in each query
  // tile.
  std::vector<SpilledLines> spill;  // where n CTAs share its SM, at [n - 1], and more as the last
  std::vector<CachedLine> in_part, parked, entering, start, producer;  // in_part: those of a CTA's life that are
  bool loaded_in_part = false;                                         // by its first CTA, whole sectors
};

class Traffic {
 public:
  /// Of the sets that are sampled: what is asked for, and what DRAM reads for it.
  struct Reads {
    double asked_bytes = 0;
    std::int64_t filled_sectors = 0;
    double filled_bytes() const { return static_cast<double>(filled_sectors * LineSampler::sector_bytes); }
    /// What DRAM reads where so many bytes are asked for.
    double of(double asked) const { return asked_bytes == 0 ? 0 : asked * filled_bytes() / asked_bytes; }
  };
  struct Count {
    Reads first_query, first_key, again;                // of Q, of K and V what no CTA had asked for before; all else
    Reads bias, partials;                               // partials: the workspace of splits, by combine()
    double first_query_bytes = 0, first_key_bytes = 0;  // of all sets
    double l2_read_bytes = 0, sm_read_bytes = 0;
    double together = 0, l1_served = 0;  // in key tiles
    std::int64_t key_tiles = 0;
    std::vector<std::int64_t> shared;  // of these, by CTAs that are n on their SM, at [n - 1]
    std::int64_t spill_filled_sectors = 0, spill_filled_around = 0;  // in key tiles, and by CTAs around them
    // of words that are stored in part, by each slot's first CTA that does: of all sets, and sectors that DRAM reads
    std::int64_t in_part_lines = 0, in_part_filled_sectors = 0;
    std::int64_t crossed_in_steps = 0, crossed_in_combine = 0;  // of crossed_sectors()
  };

  /// Keeps references. Of the options it has local memory's.
  Traffic(const Grid& grid, const Schedule& schedule, const DeviceSpec& device, int sampling,
          const TileWalkOptions& options);

  /// Where the local memory of the slot with that number lies, whichever CTA it holds.
  void give_local_memory(Slot& slot, int of_sm) const;
  /// Finds the slot's key head.
  void place(Slot& slot);
  /// What a slot reads before its first key tile, and the words that it stores, where so many CTAs share its SM.
  void begin(Slot& slot, double now, int sharing);
  /// One key tile: K, V and bias. The share of K and V that came from DRAM. `sharing`: CTAs on its SM; `in_l1`: the
  /// share that L1 has.
  double step(Slot& slot, double now, int sharing, double in_l1 = 0);
  static const SpilledLines& spilled(const Slot& slot, int sharing) {
    return slot.spill[std::min(slot.spill.size(), static_cast<std::size_t>(sharing)) - 1];
  }
  /// What the last `tiles` key tiles that it has done do with its local memory, each in the order of a warp's machine
  /// code.
  static std::vector<const std::vector<SpilledLine>*> spilled_by(const Slot& slot, int sharing, int tiles);
  void spill(const Slot& slot, const SpilledLine& line);
  std::int64_t warps_of_slot() const;
  void walks_together(int key_tiles) { count_.together += key_tiles; }
  /// O and LSE, or a split's share of them, and the words that are loaded for them.
  void finish(const Slot& slot, int sharing);
  /// The second kernel of a split one: reads every split's part of each row, writes O and LSE. Beyond so many rows it
  /// goes on as in the later half of these, and is not followed.
  void combine(std::int64_t max_rows);
  /// L2 holds nothing, and what it held is not counted.
  void empty() { cache_.empty(); }
  void leave_dirty_lines(std::int64_t bytes);
  /// The kernel is called again: nothing is counted yet, and L2 holds what it holds.
  void call_again();

  const Count& count() const { return count_; }
  std::int64_t written_back_sectors() const { return cache_.written_back_sectors() - written_back_before_; }
  std::int64_t completed_sectors() const { return cache_.completed_sectors() - completed_before_; }
  std::int64_t incomplete_sectors() const { return cache_.incomplete_sectors(); }
  std::int64_t crossed_sectors() const { return cache_.crossed_sectors() - crossed_before_; }
  std::int64_t dirty_sectors() const { return cache_.dirty_sectors(); }
  double share_of_sets() const { return sampler_.share(); }

 private:
  /// Follows of sets with many lines of the frames, and with many at a time that have yet to be loaded for the last
  /// time, as large a part as of others; and, but where so many have more than may stay dirty that these decide what is
  /// written back and what goes for it, with many stores from the other side, which cross (loads hit L1 as a rule). Of
  /// all slots, though a call may fill fewer.
  LineSampler sampler_of_frames(int sampling) const;
  /// Where a word of a slot's warp lies, of the slot that is the `of_sm`th of that SM.
  std::int64_t address_of(int sm, int of_sm, std::int64_t warp, std::int64_t word) const;
  std::int64_t local_words() const;  // of a slot's warps each: frames, and a part of what its threads keep besides
  template <class F>
  void for_rows(const TensorAddress& a, std::int64_t batch, std::int64_t head, std::int64_t row0, std::int64_t rows,
                F&& f) const {
    for (std::int64_t row = row0; row < row0 + rows; ++row) {
      const std::int64_t at = a.row(batch, head, row);
      sampler_.for_lines(at, at + a.row_bytes, f);
    }
  }
  /// O and LSE of rows in the workspace.
  template <class F>
  void for_partial_rows(std::int64_t row, std::int64_t rows, F&& f) const {
    const std::int64_t o = grid_.partial_base + row * grid_.partial_row_bytes(), lse = grid_.partial_lse_base + 4 * row;
    sampler_.for_lines(o, o + rows * grid_.partial_row_bytes(), f);
    sampler_.for_lines(lse, lse + 4 * rows, f);
  }
  /// As for_rows, of what copies of Q, K or V ask for.
  template <class F>
  void for_copied_rows(Operand x, const TensorAddress& a, std::int64_t batch, std::int64_t head, std::int64_t row0,
                       std::int64_t rows, F&& f) const {
    for_rows(a, batch, head, row0, rows, [&](CachedLine line) {
      line.whole = brings_lines(x);
      f(line);
    });
    if (!boxes_are_lines(plan_, x)) return;
    for (std::int64_t row = row0; row < row0 + rows; ++row) {
      const ByteRange beyond = asked_beyond(a.row(batch, head, row), a.row_bytes, row);
      sampler_.for_lines(beyond.first, beyond.last, [&](CachedLine line) {
        line.beside = 1;
        f(line);
      });
    }
  }
  bool brings_lines(Operand x) const {  // cp.async of 16 bytes has L2::128B
    return plan_.copy_kind == CopyKind::cp_async && plan_.copy_bytes(x) == 16;
  }
  /// What L2 has done for combine().
  struct Combined {
    double asked_bytes = 0;
    std::int64_t rows = 0, filled = 0, written_back = 0, completed = 0, crossed = 0;
  };
  Combined combined(std::int64_t rows) const {
    return {count_.partials.asked_bytes,
            rows,
            count_.partials.filled_sectors,
            written_back_sectors(),
            completed_sectors(),
            crossed_sectors()};
  }
  /// The rows that are left after `end` go on as those after `half` did.
  void combine_left(std::int64_t rows, const Combined& half, const Combined& end);
  void combine_tile(std::int64_t batch, std::int64_t head, std::int64_t row0, std::int64_t rows, int side);
  /// Sectors that DRAM reads for it.
  std::int64_t use(const Slot& slot, const SpilledLine& use);
  /// What a CTA that comes to a key tile does before or behind all of them.
  void spill_around(const Slot& slot, const std::vector<SpilledLine>& lines);
  void store_in_part(Slot& slot);
  void read_query(const Slot& slot);
  double read_keys(Slot& slot, int tile, double now, double in_l1 = 0);
  void read_bias(const Slot& slot, int tile);
  double read_lines(std::vector<TileLine>& lines, int side);  // the share that came from DRAM
  /// What read() returns, with what it makes DRAM read counted.
  template <class F>
  L2Cache::Outcome counted(Reads& reads, double asked_bytes, F&& read) {
    const std::int64_t before = cache_.filled_sectors();
    const L2Cache::Outcome outcome = read();
    reads.asked_bytes += asked_bytes, reads.filled_sectors += cache_.filled_sectors() - before;
    return outcome;
  }
  std::int64_t readers(const Slot& slot) const {  // CTAs of a cluster that have rows
    return (slot.rows + plan_.tile_m - 1) / plan_.tile_m;
  }
  bool producer_runs_ahead() const { return plan_.producer_warps > 0; }  // K of the next tile comes before V of this

  const Grid& grid_;
  const Schedule& schedule_;
  const Problem& p_;
  const KernelPlan& plan_;
  const DeviceSpec& device_;
  const LocalFrame frame_;
  const std::vector<SpillUses> spill_uses_;
  const MemoryMap memory_;
  const LineSampler sampler_;
  L2Cache cache_;
  const Coalescer coalescer_;
  const double merging_;                      // of the requests for a tile
  const double asked_q_, asked_k_, asked_v_;  // of L2, of the bytes of each, where nothing merges
  std::unordered_map<std::int64_t, HeadLines> heads_;
  Count count_;
  std::int64_t written_back_before_ = 0, completed_before_ = 0, crossed_before_ = 0;  // this call
};

}  // namespace attest
