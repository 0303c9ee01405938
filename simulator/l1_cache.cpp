#include "l1_cache.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <unordered_map>

namespace attest {
namespace {

constexpr int line_bytes = 128;
// CUDA C++ Programming Guide, Compute Capabilities: what shared memory may be set to on each, as far as it goes there
constexpr std::int64_t configurations_kib[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

}  // namespace

L1Cache::L1Cache(int lines, int all)
    : ways_(lines / sets), way_of_(static_cast<std::size_t>(all), -1), all_(static_cast<std::size_t>(ways_) * sets) {
  for (int i = 0; i < all; ++i) set_of_.push_back(static_cast<int>(random() % sets));
}

std::uint32_t L1Cache::random() {
  state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
  return static_cast<std::uint32_t>(state_ >> 33);
}

int L1Cache::to_go(const Way* set) {
  int unused = 0;
  for (int w = 0; w < ways_; ++w) {
    if (set[w].line < 0) return w;
    unused += set[w].used ? 0 : 1;
  }
  int chosen = static_cast<int>(random() % static_cast<std::uint32_t>(unused));
  int w = 0;
  while (set[w].used || chosen-- > 0) ++w;
  return w;
}

bool L1Cache::use(int line, bool keep) {
  int& way = way_of_[static_cast<std::size_t>(line)];
  const bool held = way >= 0;
  if (ways_ == 0 || (!held && !keep)) return held;
  Way* const set = all_.data() + std::ptrdiff_t{set_of_[static_cast<std::size_t>(line)]} * ways_;
  if (!held) {
    way = to_go(set);
    if (set[way].line >= 0) way_of_[static_cast<std::size_t>(set[way].line)] = -1;
    set[way].line = line;
  }
  set[way].used = true;
  if (std::all_of(set, set + ways_, [](const Way& w) { return w.used; }))
    for (int w = 0; w < ways_; ++w) set[w].used = w == way && ways_ > 1;
  return held;
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

SpillMisses spill_misses(const SpillTrace& trace, int warps, int ctas, int lines) {
  constexpr int distances = 8, turns = 6, settled = 3;
  int words = 0;
  for (const SpillAccess& a : trace.accesses) words = std::max(words, a.word + 1);
  struct Event {
    int at, cta;
    std::size_t access;
  };
  std::int64_t loads = 0, missing = 0;
  double waits = 0;
  for (int d = 0; d < distances; ++d) {
    std::vector<Event> events;
    for (int cta = 0; cta < ctas; ++cta)
      for (std::size_t i = 0; i < trace.accesses.size(); ++i) {
        const int behind = cta * (2 * d + 1) * trace.cycles / (2 * distances);
        events.push_back({(trace.accesses[i].at + behind) % trace.cycles, cta, i});
      }
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
    L1Cache cache(lines, ctas * warps * words);
    for (int turn = 0; turn < turns; ++turn) {
      std::vector<std::vector<bool>> missed(static_cast<std::size_t>(ctas * warps),
                                            std::vector<bool>(trace.accesses.size()));
      for (const Event& e : events)
        for (int warp = e.cta * warps; warp < (e.cta + 1) * warps; ++warp) {
          const SpillAccess& a = trace.accesses[e.access];
          const int line = warp * words + a.word;
          if (a.kind == SpillAccess::Kind::store) {
            cache.store(line);
            continue;
          }
          const bool held = cache.load(line, a.kind == SpillAccess::Kind::last_load);
          missed[static_cast<std::size_t>(warp)][e.access] = !held;
          if (turn < settled) continue;
          ++loads;
          missing += held ? 0 : 1;
        }
      if (turn < settled) continue;
      for (const std::vector<bool>& of_warp : missed) waits += waits_for(trace, of_warp);
    }
  }
  if (loads == 0) return {};
  return {static_cast<double>(missing) / static_cast<double>(loads),
          waits / (distances * (turns - settled) * ctas * warps)};
}

std::optional<double> mean_distance(const SpillTrace& trace) {
  std::unordered_map<int, int> stored;
  double sum = 0;
  int loads = 0;
  for (const int turn : {0, trace.cycles})  // what the first one loads before it stores it is the last one's
    for (const SpillAccess& a : trace.accesses) {
      if (a.kind == SpillAccess::Kind::call) continue;
      if (a.kind == SpillAccess::Kind::store) stored[a.word] = turn + a.at;
      if (turn == 0 || a.kind == SpillAccess::Kind::store || !stored.contains(a.word)) continue;
      sum += turn + a.at - stored[a.word], ++loads;
    }
  if (loads == 0) return std::nullopt;
  return sum / loads / trace.cycles;
}

double driven_out(double others, int lines) {
  // The benchmark `local` beside loads and stores (docs/results/h200-sm.md): of lines that are used again and again the
  // part that is gone grows with the others up to this many times what L1 holds.
  constexpr double most_outlived = 2.65;
  return lines == 0 ? 1 : std::min(1.0, others / (most_outlived * lines));
}

double missing_part(int words, int warps, int ctas, int lines) {
  const int all = words * warps * ctas;
  return all <= lines ? 0 : 1 - static_cast<double>(lines) / all;
}

}  // namespace attest
