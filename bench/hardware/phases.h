// A kernel made of phases: every SM writes, reads or waits, with a grid barrier after each round, so that traffic can
// be attributed. Reads and writes move 16 bytes a thread and bypass L1, async ones by cp.async, whose L2::128B is
// `line`; bulk ones move a chunk or a line, and boxes a chunk of 32 rows of 128 bytes of a tensor, by TMA. Prefetches
// bring lines to L2 and wait for nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "attest/hardware/placement.h"

namespace attest::hardware {

enum class PhaseOp {
  read,
  read_evict_first,
  read_evict_last,
  read_async,
  read_async_line,
  read_bulk,
  read_box,
  read_box_evict_first,
  read_box_evict_last,
  prefetch,
  prefetch_bulk,
  prefetch_box,
  prefetch_and_read_box,
  write,
  write_bulk,
  write_bulk_lines,
  write_box,
  spin
};

/// Who moves what: the chunks dealt out to all SMs once, to the SMs of each side (so both sides read everything), to
/// those of each GPC, to those of each GPC of one side, or to one side alone.
enum class Workers { split, both_sides, every_gpc, gpcs_of_side0, side0, side1 };

/// `bytes` of data in 4 KiB chunks, `rounds` times. Byte x of the data lies at base + x / row_bytes * row_stride + x %
/// row_bytes; or, where `pages` is set, chunk i is page pages[i] of the buffer.
struct Phase {
  PhaseOp op = PhaseOp::read;
  Workers workers = Workers::split;
  std::int64_t bytes = 0;
  std::int64_t base = 0;
  std::int64_t row_bytes = 4096;
  std::int64_t row_stride = 4096;
  const std::uint32_t* pages = nullptr;
  int rounds = 1;
  int rotate = 0;                  ///< in round r a worker takes the chunks of the one r * rotate before it
  int microseconds = 0;            ///< of spin
  std::int64_t reads_a_write = 0;  ///< chunks read from `read_base` after each chunk written
  std::int64_t read_base = 0;
};

inline constexpr int kMostPhases = 72;

/// Runs the phases as one kernel, `probe_phases`, one CTA an SM.
void run_phases(const std::vector<Phase>& phases, std::uint8_t* buffer, const std::vector<SmPlace>& sms);

/// FA2's spill: 264 CTAs of 128 threads, two an SM, walk `steps` key tiles of 32 KiB out of a range of `shared_bytes`,
/// and at each step each thread stores `words` 4-byte words of its own, 128 bytes a warp instruction.
struct SpillWalk {
  std::int64_t shared_bytes = 0;
  int groups = 1;  ///< the range is cut into that many heads; consecutive CTAs share one
  int rounds = 4;  ///< times each head is walked
  int words = 14;
  int places = 1;      ///< the words go to that many places in turn, as a CTA's successors take other warp slots
  int hold = 1;        ///< steps in one place
  bool local = false;  ///< through local memory (always the same place), instead of global stores
};

/// Runs it as the kernel `probe_spill`. The shared range is at `buffer`, the spilled words from `spill_base` on.
void run_spill(const SpillWalk& walk, std::uint8_t* buffer, std::int64_t spill_base);

}  // namespace attest::hardware
