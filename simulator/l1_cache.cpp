#include "l1_cache.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "address.h"
#include "noise.h"
#include "warp_paces.h"

namespace attest {
namespace {

// What each bit of the number of a row of four lines, its virtual address / 512, changes of a line's set and of its
// bank (docs/results/h200-l1.md).
constexpr std::array<std::size_t, 30> set_bits = {33, 22, 44,  12, 114, 123, 47, 82, 58, 92, 75, 54, 42,  61,  50,
                                                  89, 76, 111, 8,  20,  123, 41, 34, 49, 70, 56, 60, 115, 109, 5};
constexpr std::array<std::size_t, 30> bank_bits = {1, 2, 3, 1, 2, 3, 2, 1, 2, 1, 3, 1, 3, 2, 1,
                                                   3, 1, 3, 2, 3, 1, 3, 1, 2, 3, 2, 1, 3, 1, 3};
/// The same by the bits of a set or a bank: which of a row's number it is the parity of.
template <std::size_t bits>
constexpr std::array<std::uint32_t, bits> rows_of(const std::array<std::size_t, 30>& changed) {
  std::array<std::uint32_t, bits> rows{};
  for (std::size_t row_bit = 0; row_bit < changed.size(); ++row_bit)
    for (std::size_t bit = 0; bit < bits; ++bit)
      rows[bit] |= static_cast<std::uint32_t>(changed[row_bit] >> bit & 1) << row_bit;
  return rows;
}
constexpr std::array<std::uint32_t, 7> rows_of_set = rows_of<7>(set_bits);
constexpr std::array<std::uint32_t, 2> rows_of_bank = rows_of<2>(bank_bits);
std::size_t parities(std::uint32_t row, std::span<const std::uint32_t> masks) {
  std::size_t all = 0;
  for (std::size_t bit = 0; bit < masks.size(); ++bit)
    all |= static_cast<std::size_t>(std::popcount(row & masks[bit]) & 1) << bit;
  return all;
}
// CUDA C++ Programming Guide, Compute Capabilities: what shared memory may be set to on each, as far as it goes there
constexpr std::int64_t configurations_kib[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

// How far the CTA that began later is in its key tile where the other one of its SM begins one, by eighths of a key
// tile: mean of the `apart` of docs/results/h200-sm/warp_paces.csv and h100/warp_paces.csv
constexpr std::array<double, 8> later_cta_at = {0.166, 0.271, 0.171, 0.056, 0.056, 0.102, 0.103, 0.075};

/// Words that a turn loads before it stores them.
std::vector<int> outliving_words(const SpillTrace& trace) {
  std::set<int> seen;
  std::vector<int> words;
  for (const SpillAccess& a : trace.accesses)
    if (seen.insert(a.word).second && a.kind != SpillAccess::Kind::store) words.push_back(a.word);
  return words;
}

}  // namespace

int AddressedLines::number(std::int64_t line) {
  const auto [at, first] = number_of_.try_emplace(line / L1Cache::lines_a_row, rows_.size());
  if (first) rows_.push_back(static_cast<std::uint32_t>(line / L1Cache::lines_a_row));
  return static_cast<int>(at->second * L1Cache::lines_a_row + static_cast<std::size_t>(line % L1Cache::lines_a_row));
}

std::int64_t buffer_at_random(std::uint64_t seed) {
  constexpr int bits = 39, aligned_bits = 25;  // of an address that set_bits tell apart, and of 32 MiB
  return static_cast<std::int64_t>(mix(seed) % (1U << (bits - aligned_bits))) << aligned_bits;
}

Frames::Frames(const FramePlaces& places, int sm, int words, int warps) {
  constexpr std::int64_t row_bytes = std::int64_t{L1Cache::lines_a_row} * L1Cache::line_bytes;
  const int frame = std::max(places.words, words);
  for (int warp = 0; warp < warps && words > 0; ++warp) {
    const std::int64_t begin = places.memory.word(sm, warp, 0, frame),
                       last = places.memory.word(sm, warp, words - 1, frame);
    first_.push_back(lines() + static_cast<int>(begin % row_bytes / L1Cache::line_bytes));
    for (std::int64_t row = begin / row_bytes; row <= last / row_bytes; ++row)
      rows_.push_back(static_cast<std::uint32_t>(row));
  }
}

L1Cache::L1Cache(int lines, std::span<const std::uint32_t> rows, std::size_t hand) : held_(rows.size() * banks) {
  place_of_.reserve(rows.size());
  for (const std::uint32_t row : rows) place_of_.push_back({parities(row, rows_of_set), parities(row, rows_of_bank)});
  for (Bank& bank : banks_) bank.room = std::max(0, lines - reserved_lines) / banks, bank.hand = hand;
}

void L1Cache::let_go(Bank& bank, std::vector<int>& set) {
  const auto chosen = std::min_element(set.begin(), set.end(), [this](int a, int b) {
    if (has_come(a) != has_come(b)) return has_come(a);
    const Held &x = held(a), &y = held(b);
    if (x.ended != y.ended) return x.ended;
    if (x.ended) return x.way < y.way;
    return x.used != y.used ? y.used : x.at < y.at;
  });
  held(*chosen) = {};
  set.erase(chosen);
  --bank.lines;
}

std::size_t L1Cache::free_way(const std::vector<int>& set) const {
  std::size_t way = 0;
  while (std::ranges::any_of(set, [&](int line) { return held_[static_cast<std::size_t>(line)].way == way; })) ++way;
  return way;
}

void L1Cache::let_go_at_hand(Bank& bank) {
  for (std::size_t passed = 0; passed < sets_a_bank; ++passed) {
    std::vector<int>& set = bank.sets[bank.hand];
    bank.hand = (bank.hand + 1) % sets_a_bank;
    if (std::ranges::none_of(set, [this](int line) { return has_come(line); })) continue;
    return let_go(bank, set);
  }
}

bool L1Cache::use(int line, bool keep, double takes) {
  Bank& bank = bank_of(line);
  Held& of = held(line);
  const bool hit = of.at >= 0;
  ++accesses_;
  if (hit && keep) {
    of = {.at = accesses_, .used = true, .way = of.way, .arrives = of.arrives};
    std::vector<int>& set = bank.sets[place(line).set];
    if (std::ranges::all_of(set, [this](int each) { return held(each).used; }))
      for (const int each : set) held(each).used = each == line;
  }
  if (hit && !keep && !of.leaves) of = {.at = accesses_, .ended = true, .way = of.way, .arrives = of.arrives};
  if (bank.lines > bank.room)
    for (int n = hit ? 1 : lines_a_miss; n > 0 && bank.lines > 0; --n) let_go_at_hand(bank);
  if (hit || bank.room == 0) return hit;
  std::vector<int>& set = bank.sets[place(line).set];
  if (set.size() == ways) let_go(bank, set);
  of = {.at = accesses_, .way = free_way(set), .leaves = !keep, .arrives = time_ + takes};
  set.push_back(line);
  ++bank.lines;
  if (!keep) leaving_.push({of.arrives, line, accesses_}), go_on(time_);
  return false;
}

void L1Cache::go_on(double now) {
  time_ = now;
  for (; !leaving_.empty() && leaving_.top().arrives <= now; leaving_.pop()) {
    const auto [arrives, line, since] = leaving_.top();
    if (!held(line).leaves || held(line).at != since) continue;
    std::erase(bank_of(line).sets[place(line).set], line);
    --bank_of(line).lines;
    held(line) = {};
  }
}

std::int64_t smem_set_aside(std::int64_t bytes, const DeviceSpec& device) {
  for (const std::int64_t kib : configurations_kib)
    if (bytes <= 1024 * kib && 1024 * kib <= device.smem_bytes_per_sm) return 1024 * kib;
  return device.smem_bytes_per_sm;
}

int l1_lines(std::int64_t smem_bytes, int ctas, const DeviceSpec& device) {
  const std::int64_t taken = ctas * (smem_bytes + device.smem_reserved_bytes_per_cta);
  return static_cast<int>((device.l1_and_smem_bytes_per_sm - smem_set_aside(taken, device)) / L1Cache::line_bytes);
}

double waits_for(const SpillTrace& trace, const std::vector<bool>& missed) {
  struct Load {
    double waited, arrives;
    bool operator<(const Load& other) const { return waited > other.waited; }
  };
  std::priority_queue<Load> on_their_way;
  double late = 0;
  const auto wait_until = [&](double at) {
    for (; !on_their_way.empty() && on_their_way.top().waited <= at; on_their_way.pop())
      late = std::max(late, on_their_way.top().arrives - on_their_way.top().waited);
  };
  for (std::size_t i = 0; i < trace.accesses.size(); ++i) {
    const SpillAccess& a = trace.accesses[i];
    wait_until(a.at);
    if (missed[i]) on_their_way.push({static_cast<double>(a.waited), a.at + late + l1_miss_cycles});
  }
  wait_until(HUGE_VAL);
  return late;
}

double part_missing(const SpillTrace& trace, std::span<const double> of_access) {
  const auto loads = std::ranges::count_if(trace.accesses, [](const SpillAccess& a) {
    return a.kind == SpillAccess::Kind::load || a.kind == SpillAccess::Kind::last_load;
  });
  return loads == 0 ? 0 : std::accumulate(of_access.begin(), of_access.end(), 0.0) / static_cast<double>(loads);
}

SpillMisses spill_misses(const SpillTrace& trace, int warps, int ctas, int lines, const FramePlaces& places) {
  constexpr int distances = 16, sms_apart = 8, turns = 10, settled = 4;
  int words = 0;
  for (const SpillAccess& a : trace.accesses) words = std::max(words, a.word + 1);
  struct Event {
    double at;
    int warp, turn;
    std::size_t access;
  };
  const std::vector<int> outliving = outliving_words(trace);
  const auto all_warps = static_cast<std::size_t>(ctas) * static_cast<std::size_t>(warps);
  SpillMisses of;
  of.of_access.resize(trace.accesses.size());
  Noise noise;
  WarpPaces paces(static_cast<std::size_t>(warps));
  double waited = 0, ended = 0;  // cycles of so many warps' turns as far as they were gone through
  for (int d = 0; d < distances; ++d) {
    const double behind = (2 * d + 1) / (2.0 * distances);
    // a part of `distances`
    const double as_often =
        later_cta_at.size() * later_cta_at.at(static_cast<std::size_t>(later_cta_at.size() * (1 - behind)));
    std::vector<Event> events;
    for (int cta = 0; cta < ctas; ++cta) {
      double begins = cta * trace.cycles * behind;
      for (int turn = 0; turn < turns + ctas; ++turn) {  // the last ones beside those that are behind, not counted
        paces.draw(noise);
        for (int warp = 0; warp < warps; ++warp) {
          const double pace = paces.of(static_cast<std::size_t>(warp));
          for (std::size_t i = 0; i < trace.accesses.size(); ++i)
            events.push_back({begins + pace * trace.accesses[i].at, cta * warps + warp, turn, i});
        }
        begins += paces.slowest() * trace.cycles;
      }
    }
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
    const Frames frames(places, d * sms_apart, words, ctas * warps);
    L1Cache cache(lines, frames.rows());
    std::vector<std::vector<bool>> missed(all_warps, std::vector<bool>(trace.accesses.size()));
    for (const Event& e : events) {
      cache.go_on(e.at);
      const SpillAccess& a = trace.accesses[e.access];
      const bool last = a.kind == SpillAccess::Kind::last_load;
      const int line = frames.line(e.warp, a.word);
      std::vector<bool>& of_warp = missed[static_cast<std::size_t>(e.warp)];
      if (a.kind == SpillAccess::Kind::store) {
        cache.store(line);
      } else {
        // meanwhile its warp may wait, and the others go on as far as a warp does that waits as often as until now
        const double others_go_on = ended == 0 ? 1 : trace.cycles / (trace.cycles + waited / ended);
        of_warp[e.access] = !cache.load(line, last, l1_miss_cycles * others_go_on);
      }
      if (e.access + 1 < trace.accesses.size() || e.turn >= turns) continue;
      const double waits = waits_for(trace, of_warp);
      waited += waits, ++ended;
      if (e.turn < settled) continue;
      of.waits += as_often * waits;
      for (std::size_t i = 0; i < of_warp.size(); ++i) of.of_access[i] += of_warp[i] ? as_often : 0;
      for (const int word : outliving) of.after += cache.holds(frames.line(e.warp, word)) ? 0 : as_often;
    }
  }
  const double times = distances * (turns - settled) * ctas * warps;
  of.waits /= times;
  if (!outliving.empty()) of.after /= times * static_cast<double>(outliving.size());
  for (double& missed : of.of_access) missed /= times;
  of.part = part_missing(trace, of.of_access);
  return of;
}

double driven_out(int words, int warps, std::span<const PassingTurns> of_sms, int uses, int lines,
                  const FramePlaces& places) {
  constexpr int placements = 96, sms_apart = 4;
  constexpr std::size_t settled = 4;
  if (words == 0 || of_sms.empty()) return 0;
  std::int64_t used = 0, gone = 0;
  for (int placement = 0; placement < placements; ++placement) {
    const PassingTurns& turns = of_sms[static_cast<std::size_t>(placement) % of_sms.size()];
    const Frames frames(places, placement * sms_apart, words, warps);
    AddressedLines addressed(frames.rows());
    const std::int64_t buffer = buffer_at_random(static_cast<std::uint64_t>(placement));
    std::vector<std::vector<int>> passing;  // lines, tile by tile, turn after turn
    for (const std::vector<PassingTile>& tiles : turns)
      for (const PassingTile& tile : tiles) {
        passing.emplace_back();
        for (int row = 0; row < tile.rows; ++row)
          addressed.for_lines(buffer + tile.first_byte + row * tile.stride_bytes, tile.row_bytes,
                              [&](int line) { passing.back().push_back(line); });
      }
    L1Cache cache(lines, addressed.rows());
    double now = 0;
    auto lines_of_tile = passing.begin();
    for (std::size_t turn = 0; turn < turns.size(); ++turn) {
      for (int use = 0; use < uses; ++use)
        for (int word = 0; word < words; ++word)
          for (int warp = 0; warp < warps; ++warp) {
            const bool held = cache.load(frames.line(warp, word), false);
            if (turn >= settled && use == 0) ++used, gone += held ? 0 : 1;
          }
      for (const PassingTile& tile : turns[turn]) {
        for (const int line : *lines_of_tile++) tile.loaded ? cache.load(line, false, 1) : cache.store(line);
        cache.go_on(++now);
      }
    }
  }
  return used == 0 ? 0 : static_cast<double>(gone) / static_cast<double>(used);
}

double missing_part(int words, int warps, int ctas, int lines) {
  const int all = words * warps * ctas;
  return all <= lines ? 0 : 1 - static_cast<double>(lines) / all;
}

}  // namespace attest
