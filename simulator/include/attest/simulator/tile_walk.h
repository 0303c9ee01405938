// When each CTA reads which tile, and what that does to L2 and DRAM: an event-driven walk over key tiles. CTAs go to
// slots by occupancy, the next one to the first slot that is free; each event reads one K and one V tile through a
// sampled L2 (l2_cache.h), so that CTAs drift apart and waves form as they do on a GPU.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"
#include "attest/simulator/device.h"

namespace attest {

/// 32-bit words of a thread's local memory, each of which a kernel may store for several values.
struct LocalFrame {
  int words = 0;
  int of_tile = 0;  // those that a key tile stores
  int in_part = 0;  // of the others, those that not all lanes of a warp store
  bool operator==(const LocalFrame&) const = default;
};

/// What L2 sees of an access to local memory: of one word of each warp, or of a part of the warps, where L1 has it for
/// the others.
struct SpillUse {
  enum class Kind : std::uint8_t { store, load, last_load };
  double at = 0;  // of the key tile what lies before it, in [0, 1)
  Kind kind = Kind::store;
  int word = 0;     // of the frame
  double part = 1;  // of the warps
  bool operator==(const SpillUse&) const = default;
};

/// Of a CTA's life, each in order: of its key tiles without a mask and with one, of its first where that is such a one,
/// and of what it does before and behind all of them, at once. None before: it stores what the plan parks, the last
/// words of its frame.
struct SpillUses {
  std::vector<SpillUse> whole, masked, first_whole, first_masked, begin, end;
};

struct TileWalkOptions {
  /// Cycles a CTA needs for one key tile when n CTAs share its SM, at [n - 1]; and once at its start and its end.
  std::vector<double> cycles_per_key_tile;
  /// How much of its share of L2's time an SM with n CTAs takes, at [n - 1], with more as with the last.
  std::vector<double> l2_busy;
  /// Key tiles that it does in the time of one, likewise: by SM, where nobody uses L2, at [0], and where all SMs
  /// together do, evenly up to as much as with the most CTAs each; none: one (sm_paces()).
  std::vector<std::vector<std::vector<double>>> paces;
  /// The same cycles where the CTAs of an SM walk one head's keys together; empty: likewise.
  std::vector<double> cycles_together;
  /// Of a tile's copies the part that L1 has for a CTA that follows another one of its SM on the tile.
  double l1_serves = 0;
  /// And of one that follows another on the tile of the head beside its own, where rows of both lie in one sector.
  double l1_serves_beside = 0;
  bool in_step = false;  ///< CTAs of an SM, whose key tiles then vary alike
  /// Of these, in which warps do not stand in each other's way, and which do not vary; empty: none.
  std::vector<double> waits_per_key_tile;
  /// Loads of K and V that a warp waits for, one behind another: for DRAM where they come from there. Who follows finds
  /// them in L2, but for those that are under way to the one ahead: a head's CTAs go at the pace of its first.
  double waited_loads = 0;
  /// What a key tile takes a CTA alone on its SM longer where any of it comes from DRAM. Those that follow wait for the
  /// same copies, as with `waited_loads`.
  double longer_from_dram = 0;
  double cycles_per_cta = 0;
  /// How much a key tile's time varies, in the device's deviation of a step.
  double noise = 1;
  /// Of a thread's local memory, where it is known; else each word that is stored has a place of its own.
  std::optional<LocalFrame> frame;
  /// Where n CTAs share an SM, at [n - 1], of more as of the last: ascending by `at`, words below the frame's; none:
  /// what the plan stores, at each key tile's begin.
  std::vector<SpillUses> spill_uses;
  /// Work that is simulated at most, of events three times as many where a few heads fill L2; what lies beyond is
  /// extrapolated.
  std::int64_t max_events = 1'500'000;
  std::int64_t max_line_accesses = 3'000'000;
  /// Rows of K and V in whose lines those of the sampled sets are looked for, where CTAs walk keys alone: in such walks
  /// it is this that takes the time.
  std::int64_t max_rows_found = 10'000'000;
  /// L2 as the same call has left it that came before; else it holds nothing of the case's.
  bool warm = false;
  /// Nsight Compute runs the process, which has its memory lie elsewhere (memory_map.h).
  bool through_ncu = false;
  /// Where in memory the tensors begin, in bytes; 0: where a process's first buffer does, of half a GiB or more.
  std::int64_t memory_begin = 0;
  /// Dirty lines that are in L2 when a kernel starts and are not its own, written back as it displaces them: every
  /// launch under Nsight Compute on an H200 has them, with cold caches and with warm ones.
  std::int64_t dirty_bytes_at_start = 9 << 18;
  /// That L2 is emptied before the second launch of a call too, as Nsight Compute does with cold caches.
  bool empties_between = false;
  /// Of each SM that is followed: four, spread evenly over those that have work.
  std::size_t max_timeline_events = 4096;
  /// One set of L2 in so many is simulated; 0 chooses by the work.
  int sampling = 0;
};

/// What a CTA slot of an SM that is followed did, from `begin` to `end` cycles. Of a cluster, the SM of its first CTA
/// is followed, and `q_tile` is that CTA's.
struct TimelineEvent {
  enum class Kind : std::uint8_t { start, key_tile, finish };
  Kind kind;
  int sm = 0;
  int slot = 0;  // of the SM
  int ctas = 1;  // that share it from `begin` on
  int q_tile = 0, key_tile = 0;
  std::int64_t batch = 0, head = 0;
  double begin = 0, end = 0;
};

/// A tile of O, or of a split's, that a CTA stores as it ends.
struct StoredTile {
  std::int64_t batch = 0, head = 0;
  int q_tile = 0, split = 0;
};

/// What a CTA of an SM does there, from `at` cycles on: it starts, walks a key tile, or finishes and stores its tile.
struct SmEvent {
  enum class Kind : std::uint8_t { start, masked, whole, finish };
  Kind kind;
  int slot = 0;  // of the SM
  double at = 0;
  StoredTile tile;
};
/// Of an SM, by its number on the device, one after the other: until so many CTAs have finished. Of a CTA's key tiles
/// of a kind the first two behind any start or finish there: what comes next finds what the second has left. Without
/// CTAs that have no rows; of a cluster the first one.
struct SmEvents {
  static constexpr std::size_t finishes = 24;
  int sm = 0;
  std::vector<SmEvent> events;
};

struct TileWalk {
  double dram_read_bytes = 0;
  double dram_write_bytes = 0;      // written back while the kernel runs
  double dirty_bytes_left = 0;      // still in L2 at its end
  double first_read_bytes = 0;      // each byte of Q, K, V that some CTA reads, once
  double sm_read_bytes = 0;         // what the tile loop asks for, rows in range only
  double bias_read_bytes = 0;       // of a bias, at the SM's side, beside these
  double together = 0;              // of all key tiles, those of CTAs that walk them together with one of their SM
  std::vector<double> shared;       // and those of CTAs that are n on their SM, at [n - 1]
  double l1_served = 0;             // of K's and V's bytes, what L1 had of them
  double in_part_bytes = 0;         // of local memory, sectors stored in part, which L1 has to ask for
  double partial_bytes = 0;         // O of all splits in fp32: written by the kernel, read by the one that combines
  double partial_lse_bytes = 0;     // and their LSE
  double partial_missed_bytes = 0;  // of both, what the second kernel reads from DRAM
  double l2_read_bytes = 0;         // after requests of neighbouring SMs for one tile have merged
  double l2_crossing_bytes = 0;     // between L2's partitions, read and written
  double cycles = 0;                // from the first CTA's start to the last one's end
  double busy_fraction = 0;         // CTA slots in use, over that time
  double resident_ctas = 0;         // of an SM, on average while it has any
  std::int64_t ctas = 0, ctas_with_rows = 0, key_tiles = 0;
  std::vector<SmEvents> sms;            // twelve, spread evenly over those that have work
  std::vector<TimelineEvent> timeline;  // `begin` ascends; SM 0 is among the followed, as far as it was simulated
  // how it was simulated
  int sampling = 1;  // one set in so many
  int key_tiles_per_event = 1;
  double simulated_fraction = 1;  // of all key tiles; below 1 the rest is extrapolated
};

/// `ctas_per_sm` >= 1. Plan and case must be valid and fit each other. Throws InvalidInput naming `spill_uses`,
/// `paces` or `frame` where they are not what TileWalkOptions says, or `l2_bytes` of an L2 of so few sets that the walk
/// takes too long. Where L1 serves CTAs that follow another, which of an SM's follow is chance: of a call of few CTAs
/// it is the mean of several launches, and its events are the first one's.
TileWalk walk_tiles(const Case& c, const KernelPlan& plan, const DeviceSpec& device, int ctas_per_sm,
                    const TileWalkOptions& options);

}  // namespace attest
