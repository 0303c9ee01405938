#include "l1_cache.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <set>

#include "address.h"
#include "noise.h"
#include "warp_paces.h"

namespace attest {
namespace {

constexpr int line_bytes = 128;
// What a row of four lines that is 2^i rows farther on changes of a line's set and of its bank
// (docs/results/h200-l1.md); of the last one both hang on the pages of an allocation.
constexpr std::array<std::size_t, 17> set_bits = {33, 22, 44, 12, 114, 123, 47, 82, 58, 92, 75, 54, 42, 61, 50, 89, 76};
constexpr std::array<std::size_t, 17> bank_bits = {1, 2, 3, 1, 2, 3, 2, 1, 2, 1, 3, 1, 3, 2, 1, 3, 1};
// CUDA C++ Programming Guide, Compute Capabilities: what shared memory may be set to on each, as far as it goes there
constexpr std::int64_t configurations_kib[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

/// Words that a turn loads before it stores them.
std::vector<int> outliving_words(const SpillTrace& trace) {
  std::set<int> seen;
  std::vector<int> words;
  for (const SpillAccess& a : trace.accesses)
    if (seen.insert(a.word).second && a.kind != SpillAccess::Kind::store) words.push_back(a.word);
  return words;
}

}  // namespace

std::uint32_t row_at_random(std::uint64_t seed) {
  return static_cast<std::uint32_t>(mix(seed)) % (1U << set_bits.size());
}

Frames::Frames(const FramePlaces& places, int sm, int words, int warps) {
  constexpr std::int64_t row_bytes = std::int64_t{L1Cache::lines_a_row} * line_bytes;
  const int frame = std::max(places.words, words);
  for (int warp = 0; warp < warps && words > 0; ++warp) {
    const std::int64_t begin = places.memory.word(sm, warp, 0, frame),
                       last = places.memory.word(sm, warp, words - 1, frame);
    first_.push_back(lines() + static_cast<int>(begin % row_bytes / line_bytes));
    for (std::int64_t row = begin / row_bytes; row <= last / row_bytes; ++row)
      rows_.push_back(static_cast<std::uint32_t>(row));
  }
}

L1Cache::L1Cache(int lines, std::span<const std::uint32_t> rows, std::size_t hand) : held_(rows.size() * banks) {
  for (const std::uint32_t row : rows) {
    Place place;
    for (std::size_t bit = 0; bit < set_bits.size(); ++bit)
      if ((row >> bit & 1) != 0) place.set ^= set_bits[bit], place.bank ^= bank_bits[bit];
    place_of_.push_back(place);
  }
  for (Bank& bank : banks_) bank.room = std::max(0, lines - reserved_lines) / banks, bank.hand = hand;
}

void L1Cache::let_go(Bank& bank, std::vector<int>& set) {
  const auto chosen = std::min_element(set.begin(), set.end(), [this](int a, int b) {
    return held(a).used != held(b).used ? held(b).used : held(a).at < held(b).at;
  });
  held(*chosen) = {};
  set.erase(chosen);
  --bank.lines;
}

void L1Cache::let_go_at_hand(Bank& bank) {
  while (bank.sets[bank.hand].empty()) bank.hand = (bank.hand + 1) % sets_a_bank;
  let_go(bank, bank.sets[bank.hand]);
  bank.hand = (bank.hand + 1) % sets_a_bank;
}

bool L1Cache::use(int line, bool keep) {
  Bank& bank = bank_of(line);
  Held& of = held(line);
  const bool hit = of.at >= 0;
  ++now_;
  if (hit && keep) of = {now_, true, false};
  if (hit && !keep && !of.on_its_way) of = {0, false, false};
  if (bank.lines > bank.room)
    for (int n = hit ? 1 : lines_a_miss; n > 0 && bank.lines > 0; --n) let_go_at_hand(bank);
  if (hit || bank.room == 0) return hit;
  std::vector<int>& set = bank.sets[place(line).set];
  if (set.size() == ways) let_go(bank, set);
  of = {now_, false, !keep};
  set.push_back(line);
  ++bank.lines;
  return false;
}

void L1Cache::arrived(int line, std::int64_t since) {
  if (!held(line).on_its_way || held(line).at != since) return;
  std::erase(bank_of(line).sets[place(line).set], line);
  --bank_of(line).lines;
  held(line) = {};
}

void LastUses::add(double now, double waited_for, int line, const L1Cache& cache) {
  on_their_way_.push({now + std::clamp(waited_for, 0.0, l1_miss_cycles), line, cache.accesses()});
}

void LastUses::come(double now, L1Cache& cache) {
  for (; !on_their_way_.empty() && on_their_way_.top().arrives <= now; on_their_way_.pop())
    cache.arrived(on_their_way_.top().line, on_their_way_.top().since);
}

std::int64_t smem_set_aside(std::int64_t bytes, const DeviceSpec& device) {
  for (const std::int64_t kib : configurations_kib)
    if (bytes <= 1024 * kib && 1024 * kib <= device.smem_bytes_per_sm) return 1024 * kib;
  return device.smem_bytes_per_sm;
}

int l1_lines(std::int64_t smem_bytes, int ctas, const DeviceSpec& device) {
  const std::int64_t taken = ctas * (smem_bytes + device.smem_reserved_bytes_per_cta);
  return static_cast<int>((device.l1_and_smem_bytes_per_sm - smem_set_aside(taken, device)) / line_bytes);
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
    double at, pace;
    int warp, turn;
    std::size_t access;
  };
  const std::vector<int> outliving = outliving_words(trace);
  const auto all_warps = static_cast<std::size_t>(ctas) * static_cast<std::size_t>(warps);
  SpillMisses of;
  of.of_access.resize(trace.accesses.size());
  Noise noise;
  WarpPaces paces(static_cast<std::size_t>(warps));
  for (int d = 0; d < distances; ++d) {
    std::vector<Event> events;
    for (int cta = 0; cta < ctas; ++cta) {
      double begins = cta * trace.cycles * (2 * d + 1) / (2.0 * distances);
      for (int turn = 0; turn < turns + ctas; ++turn) {  // the last ones beside those that are behind, not counted
        paces.draw(noise);
        for (int warp = 0; warp < warps; ++warp) {
          const double pace = paces.of(static_cast<std::size_t>(warp));
          for (std::size_t i = 0; i < trace.accesses.size(); ++i)
            events.push_back({begins + pace * trace.accesses[i].at, pace, cta * warps + warp, turn, i});
        }
        begins += paces.slowest() * trace.cycles;
      }
    }
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
    const Frames frames(places, d * sms_apart, words, ctas * warps);
    L1Cache cache(lines, frames.rows());
    LastUses on_their_way;
    std::vector<std::vector<bool>> missed(all_warps * turns, std::vector<bool>(trace.accesses.size()));
    for (const Event& e : events) {
      on_their_way.come(e.at, cache);
      const SpillAccess& a = trace.accesses[e.access];
      const bool last = a.kind == SpillAccess::Kind::last_load, counted = e.turn >= settled && e.turn < turns;
      const int line = frames.line(e.warp, a.word);
      if (a.kind == SpillAccess::Kind::store) {
        cache.store(line);
      } else if (!cache.load(line, last)) {
        if (e.turn < turns)
          missed[static_cast<std::size_t>(e.turn) * all_warps + static_cast<std::size_t>(e.warp)][e.access] = true;
        if (last) on_their_way.add(e.at, e.pace * (a.waited - a.at), line, cache);
      }
      if (!counted || e.access + 1 < trace.accesses.size()) continue;
      for (const int word : outliving) of.after += cache.holds(frames.line(e.warp, word)) ? 0 : 1;
    }
    for (std::size_t turn = settled * all_warps; turn < missed.size(); ++turn) {
      of.waits += waits_for(trace, missed[turn]);
      for (std::size_t i = 0; i < missed[turn].size(); ++i) of.of_access[i] += missed[turn][i] ? 1 : 0;
    }
  }
  const double times = distances * (turns - settled) * ctas * warps;
  of.waits /= times;
  if (!outliving.empty()) of.after /= times * static_cast<double>(outliving.size());
  for (double& missed : of.of_access) missed /= times;
  of.part = part_missing(trace, of.of_access);
  return of;
}

double driven_out(int words, int warps, std::span<const PassingRows> others, int uses, int lines,
                  const FramePlaces& places) {
  constexpr int placements = 32, sms_apart = 4, turns = 12, settled = 4,
                bytes_a_row = L1Cache::lines_a_row * line_bytes;
  if (words == 0 || others.empty()) return 0;
  std::int64_t used = 0, gone = 0;
  for (int placement = 0; placement < placements; ++placement) {
    std::uint64_t seed = static_cast<std::uint64_t>(placement) << 32;
    const Frames frames(places, placement * sms_apart, words, warps);
    std::vector<std::uint32_t> rows = frames.rows();
    std::vector<int> passing;  // lines, turn after turn
    const auto pass = [&](std::int64_t line, bool first) {
      const auto row = static_cast<std::uint32_t>(line / L1Cache::lines_a_row);
      if (first || rows.back() != row) rows.push_back(row);
      passing.push_back(static_cast<int>((rows.size() - 1) * L1Cache::lines_a_row +
                                         static_cast<std::size_t>(line % L1Cache::lines_a_row)));
    };
    for (int turn = 0; turn < turns; ++turn)
      for (const PassingRows& of : others)
        for (int tile = 0; tile < of.tiles; ++tile) {
          const std::int64_t begin = std::int64_t{row_at_random(seed++)} * bytes_a_row;
          for (int row = 0; row < of.rows; ++row) {
            const std::int64_t from = begin + row * of.stride_bytes, to = from + of.row_bytes;
            for (std::int64_t line = from / line_bytes; line * line_bytes < to; ++line) pass(line, row == 0);
          }
        }
    L1Cache cache(lines, rows);
    const std::size_t a_turn = passing.size() / turns;
    for (int turn = 0; turn < turns; ++turn) {
      for (int use = 0; use < uses; ++use)
        for (int word = 0; word < words; ++word)
          for (int warp = 0; warp < warps; ++warp) {
            const bool held = cache.load(frames.line(warp, word), false);
            if (turn >= settled && use == 0) ++used, gone += held ? 0 : 1;
          }
      for (std::size_t i = 0; i < a_turn; ++i) cache.load(passing[static_cast<std::size_t>(turn) * a_turn + i], false);
    }
  }
  return used == 0 ? 0 : static_cast<double>(gone) / static_cast<double>(used);
}

double missing_part(int words, int warps, int ctas, int lines) {
  const int all = words * warps * ctas;
  return all <= lines ? 0 : 1 - static_cast<double>(lines) / all;
}

}  // namespace attest
