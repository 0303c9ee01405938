#include "attest/simulator/counts.h"

#include <algorithm>
#include <bit>
#include <set>
#include <span>

#include "distinct.h"

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

/// Whether a load's `lanes` lanes, two groups of them, are served as one: if those of each two that share 16 bytes, or
/// of each four of 8 bytes, read within the same 16.
bool served_together(const SharedAccess& a, int first, int lanes) {
  const bool load = a.kind == SharedAccess::Kind::load_word || a.kind == SharedAccess::Kind::load_staged;
  if (!load || a.bytes < 8 || first % lanes != 0) return false;
  const int of_one = 32 / a.bytes;
  for (int from = first; from < first + lanes; from += of_one) {
    std::uint32_t chunk = ~0u;
    for (int lane = from; lane < from + of_one; ++lane) {
      if ((a.active >> lane & 1) == 0) continue;
      const std::uint32_t of_lane = a.address[static_cast<std::size_t>(lane)] / 16;
      if (chunk != ~0u && chunk != of_lane) return false;
      chunk = of_lane;
    }
  }
  return true;
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
  return count_distinct(std::span(touched).first(n));
}

struct CountingSink {
  Counts& counts;
  const GlobalLayout& layout;
  bool stores_zeros;
  SharedAccess copy{}, staged{};  // whose global side comes next
  std::set<std::int64_t> read{};  // sectors, of narrow reads
  int last_copy = 0;              // its wavefronts by its places in shared memory; 0: there is none
  int last_ideal = 0;             // of the last access

  void shared(const SharedAccess& a) {
    if (stores_zeros && a.kind == SharedAccess::Kind::load_staged)
      staged = a;  // by lane, if its row exists
    else
      count(a);
  }
  void count(const SharedAccess& a) {
    const int n = wavefronts(a), ideal = ideal_wavefronts(a);
    const bool bulk = a.kind == SharedAccess::Kind::fill_bulk;
    counts.smem_wavefronts += bulk ? 0 : n;
    counts.smem_wavefronts_ideal += bulk ? 0 : ideal;
    counts.wavefronts_by_kind[static_cast<std::size_t>(a.kind)] += n;
    counts.ideal_by_kind[static_cast<std::size_t>(a.kind)] += ideal;
    last_ideal = ideal;
    see_ways(a.kind, n);
    last_copy = a.kind == SharedAccess::Kind::fill_async ? n : 0;
    if (last_copy != 0) copy = a;
    if (last_copy != 0 && a.bytes == 16) {  // zeros alone, if nothing is read
      counts.copied[static_cast<std::size_t>(a.operand)] += {n, n, n};
      counts.copied_ideal[static_cast<std::size_t>(a.operand)] += {ideal, ideal, ideal};
    }
    counts.copies += a.kind == SharedAccess::Kind::fill_async || a.kind == SharedAccess::Kind::fill_sync;
  }
  void global(const GlobalAccess& a) {
    const auto x = static_cast<std::size_t>(a.operand);
    if (stores_zeros && a.write) {
      staged.active &= a.active;
      count(staged);
    }
    counts.global_bytes[x] += std::int64_t{std::popcount(a.active)} * a.bytes;
    CopyCost cost = cost_of(a, a.active);
    // what is narrower than 16 bytes goes through L1, which has the sectors that the step has read before
    if (!a.write && a.bytes < 16) cost.sectors = unread_sectors(a);
    counts.global_sectors[x] += cost.sectors;
    const int more = last_copy == 0 ? 0 : cost.wavefronts - last_copy;
    if (last_copy != 0) see_ways(copy.kind, cost.wavefronts);
    const int ideal_more = last_copy != 0 && a.bytes == 16 ? ideal_beside_zeros(a) : 0;
    if (last_copy != 0 && a.bytes == 16) {
      const int idle = std::popcount(copy.active & ~a.active);
      const int zeros = stores_zeros ? wavefronts(zeros_beside(a)) : 0;
      counts.copied[x] += {more, 0, cost_of(a, copy.active).wavefronts + zeros - last_copy, idle > 0, idle};
      counts.copied_ideal[x] += {ideal_more, 0, stores_zeros ? ideal_wavefronts(zeros_beside(a)) : 0};
    }
    counts.smem_wavefronts += more;
    counts.smem_wavefronts_ideal += ideal_more;
    counts.wavefronts_by_kind[static_cast<std::size_t>(SharedAccess::Kind::fill_async)] += more;
    counts.ideal_by_kind[static_cast<std::size_t>(SharedAccess::Kind::fill_async)] += ideal_more;
    last_copy = 0;
  }
  SharedAccess zeros_beside(const GlobalAccess& a) const {
    SharedAccess zeros = copy;
    zeros.active &= ~a.active;
    return zeros;
  }
  /// What a copy's ideal is beside that of all its lanes: what is read, where some write zeros; where those are stores
  /// of their own, what two roundings in place of one make more.
  int ideal_beside_zeros(const GlobalAccess& a) const {
    SharedAccess reads = copy;
    reads.active &= a.active;
    if (reads.active == copy.active) return 0;
    return ideal_wavefronts(reads) + (stores_zeros ? ideal_wavefronts(zeros_beside(a)) - ideal_wavefronts(copy) : 0);
  }
  void see_ways(SharedAccess::Kind kind, int wavefronts) {
    std::int64_t& most = counts.ways_by_kind[static_cast<std::size_t>(kind)];
    if (last_ideal > 0) most = std::max<std::int64_t>(most, (wavefronts + last_ideal - 1) / last_ideal);
  }
  int unread_sectors(const GlobalAccess& a) {
    int n = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      if ((a.active >> lane & 1) == 0) continue;
      const std::int64_t first = layout.row(static_cast<std::size_t>(a.operand), a.row[lane]) + a.byte[lane];
      for (const std::int64_t byte : {first, first + a.bytes - 1}) n += read.insert(byte / 32).second ? 1 : 0;
    }
    return n;
  }
  CopyCost cost_of(const GlobalAccess& a, std::uint32_t present) const {
    if (last_copy == 0) return {units(a, 32, layout), 0};
    std::array<std::int64_t, 32> from{};
    for (std::size_t lane = 0; lane < 32; ++lane)
      if (present >> lane & 1) from[lane] = layout.row(static_cast<std::size_t>(a.operand), a.row[lane]) + a.byte[lane];
    return copy_cost(copy, from, present, stores_zeros);
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
  for (int first = 0; first < 32; first += lanes) {
    const bool twice = served_together(access, first, 2 * lanes);
    total += group_wavefronts(access, first, twice ? 2 * lanes : lanes);
    first += twice ? lanes : 0;
  }
  return total;
}

int ideal_wavefronts(const SharedAccess& access) { return (std::popcount(access.active) * access.bytes + 127) / 128; }

CopiedWavefronts& CopiedWavefronts::operator+=(const CopiedWavefronts& other) {
  all += other.all, as_zeros += other.as_zeros, as_whole += other.as_whole;
  in_part += other.in_part, idle_lanes += other.idle_lanes;
  return *this;
}

CopiedWavefronts& CopiedWavefronts::operator*=(std::int64_t times) {
  all *= times, as_zeros *= times, as_whole *= times;
  in_part *= times, idle_lanes *= times;
  return *this;
}

Counts& Counts::operator+=(const Counts& other) {
  smem_wavefronts += other.smem_wavefronts;
  smem_wavefronts_ideal += other.smem_wavefronts_ideal;
  add(wavefronts_by_kind, other.wavefronts_by_kind);
  add(ideal_by_kind, other.ideal_by_kind);
  for (std::size_t k = 0; k < ways_by_kind.size(); ++k)
    ways_by_kind[k] = std::max(ways_by_kind[k], other.ways_by_kind[k]);
  add(global_bytes, other.global_bytes);
  add(global_sectors, other.global_sectors);
  add(copied, other.copied);
  add(copied_ideal, other.copied_ideal);
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
  scale(counts.copied);
  scale(counts.copied_ideal);
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

std::vector<AccessWavefronts> wavefronts_by_access(const Counts& counts) {
  using Kind = SharedAccess::Kind;
  constexpr struct {
    Kind kind;
    std::string_view use, instruction;
  } names[] = {{Kind::fill_async, "fill", "cp.async"},
               {Kind::fill_sync, "fill", "st.shared"},
               {Kind::load_matrix, "fragments", "ldmatrix"},
               {Kind::load_word, "fragments", "ld.shared"},
               {Kind::stage, "O staged", "st.shared"},
               {Kind::load_staged, "O read back", "ld.shared"},
               {Kind::fill_bulk, "fill", "TMA"},
               {Kind::multiply, "operands", "wgmma"}};
  static_assert(std::size(names) == SharedAccess::num_kinds);
  std::vector<AccessWavefronts> result;
  for (const auto& name : names) {
    const auto k = static_cast<std::size_t>(name.kind);
    if (counts.wavefronts_by_kind[k] != 0)
      result.push_back({name.use, name.instruction, counts.wavefronts_by_kind[k], counts.ideal_by_kind[k],
                        counts.ways_by_kind[k], name.kind != Kind::fill_bulk});
  }
  return result;
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
    CountingSink sink{at->second, layout_, plan_.stores_zeros};
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
  constexpr int rows_of_sector = 8;
  const int rows = std::clamp(program.work.seqlen_q - row0, 0, plan_.tile_m);
  if (plan_.stores_lse) total.lse_bytes = std::int64_t{32} * ((rows + rows_of_sector - 1) / rows_of_sector);
  return total;
}

}  // namespace attest
