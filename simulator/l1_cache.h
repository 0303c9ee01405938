// An SM's L1 as local memory sees it.
//
// What shared memory leaves of an SM's memory holds lines of 128 bytes, in four banks of 128 sets of 4 ways. Where a
// bank holds more than it has room for, a clock hand that goes round its sets has the next one evict a line: of those
// not marked as used (NRU) the least recently used one. A hit marks a line, and where all of a set are marked then, it
// alone stays so. A store keeps its line and is written through; so does a load, but for the last one of a word
// (LDL.LU): where it misses it has a line until its data come, and where it hits the line is evicted before others of
// its set, of several such that in the lowest way; a line that comes takes the lowest that is free. A line whose data
// are on their way is not evicted, but for another one of its set where all of that are. A line's set and bank hang on
// its virtual address. All of it is measured access by access (docs/results/h200-l1.md), by words of local memory on an
// H200 alone. H200 and H100 do alike with global memory; other devices are taken to, and LDG.LU is as LDL.LU.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <vector>

#include "attest/simulator/device.h"

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
  /// the set that evicts a line first.
  L1Cache(int lines, std::span<const std::uint32_t> rows, std::size_t hand = 0);
  /// Whether the line was held. `takes`: cycles until the data of a load that misses have come.
  bool store(int line) { return use(line, true, 0); }
  bool load(int line, bool last_use, double takes = 0) { return use(line, !last_use, takes); }
  bool holds(int line) const { return at(line).state != State::absent; }
  /// Advances time, in cycles; `now` must not decrease.
  void advance(double now);

 private:
  static constexpr int banks = lines_a_row, reserved_lines = 56;
  static constexpr std::size_t sets_a_bank = 128, ways = 4;
  static constexpr int evicted_by_a_miss = 5;  // while its bank holds one too many
  enum class State : std::uint8_t {
    absent,
    held,
    marked,       // was hit, and no other hit has left all of its set marked since
    evict_first,  // was hit by a last use, and by nothing since
    transient,    // a last use's that missed and nobody has used since: gone when its data come
  };
  struct Line {
    State state = State::absent;
    std::size_t way = 0;    // of its set
    std::int64_t used = 0;  // the access that did last
    double arrives = -HUGE_VAL;
  };
  struct Transient {
    double arrives;
    int line;
    std::int64_t since;  // the access that missed
    bool operator>(const Transient& other) const { return arrives > other.arrives; }
  };
  struct Place {
    std::size_t set = 0, bank = 0;  // the bank of a row's first line; the others lie beside it
  };
  struct Bank {
    int room = 0, lines = 0;
    std::size_t hand = 0;  // the set that evicts a line next
    std::array<std::vector<int>, sets_a_bank> sets;
  };
  bool use(int line, bool keep, double takes);
  bool has_come(int line) const { return at(line).arrives <= time_; }
  Bank& bank_of(int line) { return banks_[static_cast<std::size_t>(line) % banks ^ place(line).bank]; }
  const Place& place(int line) const { return place_of_[static_cast<std::size_t>(line / lines_a_row)]; }
  Line& at(int line) { return lines_[static_cast<std::size_t>(line)]; }
  const Line& at(int line) const { return lines_[static_cast<std::size_t>(line)]; }
  void evict(Bank& bank, std::vector<int>& set);
  void evict_at_hand(Bank& bank);
  std::size_t free_way(const std::vector<int>& set) const;

  double time_ = 0;
  std::int64_t accesses_ = 0;
  std::priority_queue<Transient, std::vector<Transient>, std::greater<>> transients_;
  std::vector<Place> place_of_;  // by row
  std::vector<Line> lines_;
  std::array<Bank, banks> banks_;
};

/// Bytes of shared memory that the driver sets aside of an SM for CTAs that take `bytes`: the least configuration with
/// room for them.
std::int64_t smem_set_aside(std::int64_t bytes, const DeviceSpec& device);

/// Lines of L1 beside the shared memory of `ctas` CTAs that take `smem_bytes` each, with what is reserved for each.
int l1_lines(std::int64_t smem_bytes, int ctas, const DeviceSpec& device);

}  // namespace attest
