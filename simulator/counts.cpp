#include "attest/simulator/counts.h"

#include <algorithm>
#include <bit>

namespace attest {
namespace {

int lanes_per_wavefront(int bytes) { return bytes >= 16 ? 8 : bytes >= 8 ? 16 : 32; }

int group_wavefronts(const SharedAccess& a, int first, int lanes) {
  std::array<std::array<std::uint32_t, 32>, 32> words;  // by bank
  std::array<int, 32> distinct{};
  int worst = 0;
  for (int lane = first; lane < first + lanes; ++lane) {
    if ((a.active >> lane & 1) == 0) continue;
    const std::uint32_t address = a.address[static_cast<std::size_t>(lane)];
    for (std::uint32_t word = address / 4; word <= (address + static_cast<std::uint32_t>(a.bytes) - 1) / 4; ++word) {
      auto& bank = words[word % 32];
      int& n = distinct[word % 32];
      if (std::find(bank.begin(), bank.begin() + n, word) != bank.begin() + n) continue;
      bank[static_cast<std::size_t>(n++)] = word;
      worst = std::max(worst, n);
    }
  }
  return worst;
}

/// Aligned units of `unit_bytes` that the lanes touch.
int units(const GlobalAccess& a, std::int64_t unit_bytes, const GlobalLayout& layout) {
  std::array<std::int64_t, 64> touched;
  std::size_t n = 0;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    if ((a.active >> lane & 1) == 0) continue;
    const std::int64_t first = layout.row(static_cast<std::size_t>(a.operand), a.row[lane]) + a.byte[lane];
    touched[n++] = first / unit_bytes;
    touched[n++] = (first + a.bytes - 1) / unit_bytes;
  }
  std::sort(touched.begin(), touched.begin() + static_cast<std::ptrdiff_t>(n));
  return static_cast<int>(std::unique(touched.begin(), touched.begin() + static_cast<std::ptrdiff_t>(n)) -
                          touched.begin());
}

struct CountingSink {
  Counts& counts;
  const GlobalLayout& layout;
  int last_copy = 0;  // wavefronts of the copy whose global side comes next

  void shared(const SharedAccess& a) {
    const int n = wavefronts(a), ideal = ideal_wavefronts(a);
    const bool bulk = a.kind == SharedAccess::Kind::fill_bulk;
    counts.smem_wavefronts += bulk ? 0 : n;
    counts.smem_wavefronts_ideal += bulk ? 0 : ideal;
    counts.wavefronts_by_kind[static_cast<std::size_t>(a.kind)] += n;
    counts.ideal_by_kind[static_cast<std::size_t>(a.kind)] += ideal;
    last_copy = a.kind == SharedAccess::Kind::fill_async ? n : 0;
    counts.copies += a.kind == SharedAccess::Kind::fill_async || a.kind == SharedAccess::Kind::fill_sync;
  }
  void global(const GlobalAccess& a) {
    const auto x = static_cast<std::size_t>(a.operand);
    counts.global_bytes[x] += std::int64_t{std::popcount(a.active)} * a.bytes;
    counts.global_sectors[x] += units(a, 32, layout);
    // a cp.async fills shared memory from one 128-byte line at a time
    if (last_copy == 0) return;
    const int lines = units(a, 128, layout);
    counts.smem_wavefronts += std::max(0, lines - last_copy);
    counts.wavefronts_by_kind[static_cast<std::size_t>(SharedAccess::Kind::fill_async)] +=
        std::max(0, lines - last_copy);
    last_copy = 0;
  }
  void bulk_row(Operand operand, int row, int bytes, bool /*write*/) {
    const auto x = static_cast<std::size_t>(operand);
    const std::int64_t first = layout.row(x, row);
    counts.global_bytes[x] += bytes;
    counts.global_sectors[x] += ((first + bytes - 1) >> 5) - (first >> 5) + 1;
  }
  void atomic() { counts.atomic_bytes += 32; }
  void matrix_step() { ++counts.matrix_steps; }
  void exponentials(int rows, int keys) { counts.exponentials += std::int64_t{rows} * keys; }
};

template <class Array>
void add(Array& to, const Array& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace

int wavefronts(const SharedAccess& access) {
  int total = 0;
  const int lanes = lanes_per_wavefront(access.bytes);
  for (int first = 0; first < 32; first += lanes) total += group_wavefronts(access, first, lanes);
  return total;
}

int ideal_wavefronts(const SharedAccess& access) { return (std::popcount(access.active) * access.bytes + 127) / 128; }

Counts& Counts::operator+=(const Counts& other) {
  smem_wavefronts += other.smem_wavefronts;
  smem_wavefronts_ideal += other.smem_wavefronts_ideal;
  add(wavefronts_by_kind, other.wavefronts_by_kind);
  add(ideal_by_kind, other.ideal_by_kind);
  add(global_bytes, other.global_bytes);
  add(global_sectors, other.global_sectors);
  lse_bytes += other.lse_bytes;
  atomic_bytes += other.atomic_bytes;
  matrix_steps += other.matrix_steps;
  exponentials += other.exponentials;
  copies += other.copies;
  barriers += other.barriers;
  key_tiles += other.key_tiles;
  masked_key_tiles += other.masked_key_tiles;
  return *this;
}

Counts operator*(Counts counts, std::int64_t times) {
  const auto scale = [&](auto& array) {
    for (auto& x : array) x *= times;
  };
  counts.smem_wavefronts *= times;
  counts.smem_wavefronts_ideal *= times;
  scale(counts.wavefronts_by_kind);
  scale(counts.ideal_by_kind);
  scale(counts.global_bytes);
  scale(counts.global_sectors);
  counts.lse_bytes *= times;
  counts.atomic_bytes *= times;
  counts.matrix_steps *= times;
  counts.exponentials *= times;
  counts.copies *= times;
  counts.barriers *= times;
  counts.key_tiles *= times;
  counts.masked_key_tiles *= times;
  return counts;
}

const Counts& Counter::of_step(const Work& work, const Step& step, int warp) {
  const bool store = step.kind == Step::Kind::store;
  const int row0 = store ? work.q_tile * plan_.tile_m : step.row0;
  const auto x = static_cast<std::size_t>(step.operand);
  // What a step's counts depend on: which rows exist, and where the tile's first row lies within a sector.
  const int valid =
      step.kind == Step::Kind::copy || store ? std::clamp(step.limit - row0, 0, plan_.rows(step.operand)) : 0;
  const auto residue = static_cast<std::uint64_t>(layout_.row(x, row0) & 127);
  const std::uint64_t key = static_cast<std::uint64_t>(step.kind) | static_cast<std::uint64_t>(step.operand) << 4 |
                            static_cast<std::uint64_t>(warp) << 6 | static_cast<std::uint64_t>(step.slot) << 11 |
                            static_cast<std::uint64_t>(valid) << 16 | residue << 32;
  const auto [at, is_new] = seen_.try_emplace(key);
  if (is_new) {
    CountingSink sink{at->second, layout_, 0};
    if (plan_.producer_warps == 0)
      expand(plan_, work, step, warp, sink);
    else
      expand_warp_specialized(plan_, work, step, warp, sink);
  }
  return at->second;
}

Counts Counter::count(const Program& program) {
  Counts total;
  for (std::size_t warp = 0; warp < program.warps.size(); ++warp) {
    for (const Step& step : program.warps[warp]) {
      switch (step.kind) {
        case Step::Kind::barrier:
          ++total.barriers;
          break;
        case Step::Kind::commit:
        case Step::Kind::wait:
        case Step::Kind::acquire:
        case Step::Kind::await:
        case Step::Kind::release:
        case Step::Kind::warp_barrier:
        case Step::Kind::mask:
        case Step::Kind::clear:
          break;
        default:
          total += of_step(program.work, step, static_cast<int>(warp));
      }
      total.key_tiles += warp == 0 && step.kind == Step::Kind::scores;
      total.masked_key_tiles += warp == 0 && step.kind == Step::Kind::mask;
    }
  }
  const int row0 = program.work.q_tile * plan_.tile_m;
  total.lse_bytes = std::int64_t{4} * std::clamp(program.work.seqlen_q - row0, 0, plan_.tile_m);
  return total;
}

}  // namespace attest
