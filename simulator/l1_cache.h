// An SM's L1 as local memory sees it: which of a kernel's spill loads find their word there.
//
// A word of a warp is a line of 128 bytes. What shared memory leaves of an SM's memory holds lines, in four banks of
// 128 sets of 4 ways. Where a bank holds more than it has room for, a hand that goes round its sets has the next one
// let go of a line: of those not marked as used the least recently used one. A hit marks a line, and where all of a set
// are marked then, it alone stays so. A store keeps its line and is written through; so does a load, but for the last
// one of a word (LDL.LU): where it misses it has a line until its data come, and where it hits the line goes before
// others of its set, of several such that in the lowest way; a line that comes takes the lowest that is free. A line
// whose data are on their way is not let go of, but for another one of its set where all of that are. A line's set and
// bank hang on its virtual address. All of it is measured access by access (docs/results/h200-l1.md), by words of local
// memory on an H200 alone. H200 and H100 do alike with global memory; other devices are taken to, and LDG.LU is as
// LDL.LU.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attest/simulator/device.h"
#include "memory_map.h"

namespace attest {

// From a load that misses to its word (docs/results/h200-sm.md, local: from one to the next in a chain on all SMs, in
// whose loop 16 loads follow each other without anything between).
inline constexpr double l1_miss_cycles = 293;

/// Lines, of which L1 holds some.
class L1Cache {
 public:
  static constexpr int lines_a_row = 4;
  static constexpr std::int64_t line_bytes = 128;

  /// `lines` of those of `rows` at most are held, numbered four to a row. A row is an address / 512. `hand` is
  /// the set that lets go of a line first.
  L1Cache(int lines, std::span<const std::uint32_t> rows, std::size_t hand = 0);
  /// Whether the line was held. `takes`: cycles until the data of a load that misses have come.
  bool store(int line) { return use(line, true, 0); }
  bool load(int line, bool last_use, double takes = 0) { return use(line, !last_use, takes); }
  bool holds(int line) const { return held_[static_cast<std::size_t>(line)].at >= 0; }
  /// It is that time, in cycles, and not before it was last.
  void go_on(double now);

 private:
  static constexpr int banks = lines_a_row, reserved_lines = 56;
  static constexpr std::size_t sets_a_bank = 128, ways = 4;
  static constexpr int lines_a_miss = 5;  // that go where a line comes while its bank holds one too many
  struct Held {
    std::int64_t at = -1;  // of its last use; -1: not held
    bool used = false;     // is marked: was hit, and no other hit has left all of its set marked since
    bool ended = false;    // was hit by a last use, and by nothing since
    std::size_t way = 0;   // of its set
    bool leaves = false;   // when its data come: a last use's, which nobody has used since
    double arrives = -HUGE_VAL;
  };
  struct Leaving {
    double arrives;
    int line;
    std::int64_t since;  // the access that missed
    bool operator>(const Leaving& other) const { return arrives > other.arrives; }
  };
  struct Place {
    std::size_t set = 0, bank = 0;  // the bank of a row's first line; the others lie beside it
  };
  struct Bank {
    int room = 0, lines = 0;
    std::size_t hand = 0;  // the set that lets go of a line next
    std::array<std::vector<int>, sets_a_bank> sets;
  };
  bool use(int line, bool keep, double takes);
  bool has_come(int line) const { return held_[static_cast<std::size_t>(line)].arrives <= time_; }
  Bank& bank_of(int line) { return banks_[static_cast<std::size_t>(line) % banks ^ place(line).bank]; }
  const Place& place(int line) const { return place_of_[static_cast<std::size_t>(line / lines_a_row)]; }
  Held& held(int line) { return held_[static_cast<std::size_t>(line)]; }
  void let_go(Bank& bank, std::vector<int>& set);
  std::size_t free_way(const std::vector<int>& set) const;
  void let_go_at_hand(Bank& bank);

  double time_ = 0;
  std::int64_t accesses_ = 0;
  std::priority_queue<Leaving, std::vector<Leaving>, std::greater<>> leaving_;
  std::vector<Place> place_of_;  // by row
  std::vector<Held> held_;
  std::array<Bank, banks> banks_;
};

/// A warp's access to a word of its frame in a turn of a loop over key tiles. Times are cycles of a warp alone, from
/// the turn's begin, where no load misses.
struct SpillAccess {
  enum class Kind : std::uint8_t { store, load, last_load, call };  // call: of a function that copies, no access
  int at = 0;
  Kind kind = Kind::store;
  int word = 0;
  int waited = 0;  // until when a load needs not have brought its word; the next turn's begin and later likewise
};

/// Where a kernel's frames lie, of so many words a thread.
struct FramePlaces {
  MemoryMap memory;
  int words = 0;
};

/// The first `words` of the frames of the warps in an SM's lowest places: each word of a warp is a line.
class Frames {
 public:
  Frames(const FramePlaces& places, int sm, int words, int warps);
  const std::vector<std::uint32_t>& rows() const { return rows_; }
  int line(int warp, int word) const { return first_[static_cast<std::size_t>(warp)] + word; }
  int lines() const { return static_cast<int>(rows_.size()) * L1Cache::lines_a_row; }

 private:
  std::vector<std::uint32_t> rows_;
  std::vector<int> first_;  // by warp
};

/// Lines beside frames, by their virtual addresses: numbered as L1Cache has those of rows().
class AddressedLines {
 public:
  explicit AddressedLines(std::vector<std::uint32_t> frames) : rows_(std::move(frames)) {}
  /// Of `bytes` from `first` on, each line.
  template <class F>
  void for_lines(std::int64_t first, std::int64_t bytes, F&& f) {
    constexpr std::int64_t line_bytes = L1Cache::line_bytes;
    for (std::int64_t line = first / line_bytes; line * line_bytes < first + bytes; ++line) f(number(line));
  }
  const std::vector<std::uint32_t>& rows() const { return rows_; }

 private:
  int number(std::int64_t line);

  std::vector<std::uint32_t> rows_;
  std::unordered_map<std::int64_t, std::size_t> number_of_;
};

/// Where a buffer begins that lies nobody knows where: large ones do at multiples of 32 MiB.
std::int64_t buffer_at_random(std::uint64_t seed);

struct SpillTrace {
  int cycles = 0;  // of a turn
  std::vector<SpillAccess> accesses;
};

/// Of a turn's loads.
struct SpillMisses {
  double part = 0;                // of them that miss
  std::vector<double> of_access;  // of the warps' those that miss, by the trace's accesses; 0 of stores
  double waits = 0;               // cycles that a warp waits for those, while others ask L2 for nothing
  double after = 0;               // of the words that outlive a turn those that are gone at its end
};

/// Of a turn's loads those that miss, from the same by access.
double part_missing(const SpillTrace& trace, std::span<const double> of_access);

/// Cycles that a warp waits in a turn in which those of its accesses miss: loads that are waited for together wait
/// once, and as much less as a warp has to do before.
double waits_for(const SpillTrace& trace, const std::vector<bool>& missed);

/// Bytes of shared memory that the driver sets aside of an SM for CTAs that take `bytes`: the least configuration with
/// room for them.
std::int64_t smem_set_aside(std::int64_t bytes, const DeviceSpec& device);

/// Lines of L1 beside the shared memory of `ctas` CTAs that take `smem_bytes` each, with what is reserved for each.
int l1_lines(std::int64_t smem_bytes, int ctas, const DeviceSpec& device);

/// Where `ctas` CTAs of `warps` share an L1 of `lines`, at any distance from each other. The warps of a CTA begin each
/// turn together and go through it at paces of their own.
SpillMisses spill_misses(const SpillTrace& trace, int warps, int ctas, int lines, const FramePlaces& places);

/// A tile's rows, which pass through L1 one after the other. One that is loaded is on its way as a whole.
struct PassingTile {
  std::int64_t first_byte = 0;  // of the buffer's
  int rows = 0, row_bytes = 0;
  std::int64_t stride_bytes = 0;
  bool loaded = true;
};
/// What passes through an SM's L1, tile by tile, turn after turn.
using PassingTurns = std::array<std::vector<PassingTile>, 12>;

/// The part of `words` of `warps` each that L1 has let go of when they are loaded again, where they are loaded `uses`
/// times before each of an SM's turns, of which all but the first few count. The mean of several SMs, whose frames lie
/// anywhere to the buffer.
double driven_out(int words, int warps, std::span<const PassingTurns> of_sms, int uses, int lines,
                  const FramePlaces& places);

/// The part that misses of `words` that a warp stores and loads for the last time once a turn, in an order that is not
/// known: what does not fit, as if what misses took no place (0.1 more or less in the benchmark).
double missing_part(int words, int warps, int ctas, int lines);

}  // namespace attest
