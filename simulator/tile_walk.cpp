#include "attest/simulator/tile_walk.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <queue>
#include <unordered_map>

#include "address.h"
#include "attest/plan/launch.h"
#include "attest/simulator/l2_cache.h"

namespace attest {
namespace {

constexpr std::int64_t page = 2 << 20;  // tensors start on large pages, as an allocator of big blocks gives them

std::int64_t next_page(std::int64_t address) { return (address + page - 1) / page * page; }

/// A sampled line of K or V, and whether a CTA has read these sectors before.
struct TileLine {
  CachedLine line;
  bool seen = false;
};

/// The sampled lines of all tiles of one key head, each found when it is first read.
struct HeadLines {
  std::vector<std::vector<TileLine>> k, v;
  std::vector<float> first_read;  // cycles since the kernel's start; below 0: not read yet
};

/// One request in flight merges with another of the SM next to it: the share of the second one's bytes that still goes
/// to L2, by how many cycles later it comes (measured on an H200 with two SMs of a TPC: requests of both together were
/// .50, .61, .85, .875, .93, .99 of what was asked for; .50 up to 200 cycles where the line comes from DRAM).
double second_request_share(double cycles_later, bool from_dram) {
  if (from_dram && cycles_later <= 200) return 0;
  constexpr double at[] = {0, 50, 100, 200, 400, 600}, share[] = {0, 0.22, 0.70, 0.75, 0.86, 0.98};
  if (cycles_later >= at[5]) return 1;
  int i = 0;
  while (cycles_later > at[i + 1]) ++i;
  return share[i] + (share[i + 1] - share[i]) * (cycles_later - at[i]) / (at[i + 1] - at[i]);
}

struct Slot {
  std::int64_t cta = -1;
  int sm = 0;
  int side = 0;
  int tile = 0, begin = 0;  // key tiles left: [begin, tile)
  bool fresh = true;        // Q is yet to be read
  std::int64_t batch = 0, head = 0;
  int q_tile = 0;
  HeadLines* lines = nullptr;
  std::int64_t spill_address = 0;
  std::int64_t last_read = -1;  // (key head, tile) and when: what a neighbour's request may merge with
  double last_time = -1e18;
};

class Walk {
 public:
  Walk(const Case& c, const KernelPlan& plan, const DeviceSpec& device, int ctas_per_sm, const TileWalkOptions& options)
      : p_(c.problem), plan_(plan), device_(device), options_(options), ctas_per_sm_(ctas_per_sm) {
    const int e = plan.element_bytes;
    q_ = make_address(c.layout, e, page, p_.batch, p_.seqlen_q, p_.nheads, p_.headdim);
    k_ = make_address(c.layout, e, next_page(q_.end), p_.batch, p_.seqlen_k, p_.nheads_k, p_.headdim);
    v_ = make_address(c.layout, e, next_page(k_.end), p_.batch, p_.seqlen_k, p_.nheads_k, p_.headdim_v);
    o_ = make_address(c.layout, e, next_page(v_.end), p_.batch, p_.seqlen_q, p_.nheads, p_.headdim_v);
    lse_base_ = next_page(o_.end);
    spill_base_ = next_page(lse_base_ + 4 * p_.batch * p_.nheads * p_.seqlen_q);
  }

  TileWalk run() {
    survey();
    if (result_.ctas == 0) return result_;
    choose_resolution();
    simulate();
    return result_;
  }

 private:
  /// What needs no simulation: every CTA's tiles, and the bytes of their rows.
  void survey() {
    const std::int64_t heads = p_.batch * p_.nheads;
    q_tiles_ = num_q_tiles(plan_, p_);
    result_.ctas = q_tiles_ * heads;
    std::int64_t low = p_.seqlen_k, high = 0, q_rows = 0;
    double key_rows = 0;
    ranges_.reserve(static_cast<std::size_t>(q_tiles_));
    for (int t = 0; t < q_tiles_; ++t) {
      const KeyRange range = plan_.range(make_work(p_, t));
      ranges_.push_back(range);
      if (range.begin == range.end) continue;
      const std::int64_t first = std::int64_t{range.begin} * plan_.tile_n;
      const std::int64_t last = std::min(std::int64_t{range.end} * plan_.tile_n, p_.seqlen_k);
      low = std::min(low, first), high = std::max(high, last);
      q_rows += std::min<std::int64_t>(plan_.tile_m, p_.seqlen_q - std::int64_t{t} * plan_.tile_m);
      key_rows += static_cast<double>(last - first);
      key_tiles_a_head_ += range.end - range.begin;
    }
    q_read_bytes_ = static_cast<double>(q_rows * q_.row_bytes * heads);
    const auto kv_row = static_cast<double>(k_.row_bytes + v_.row_bytes);
    result_.sm_read_bytes = q_read_bytes_ + key_rows * kv_row * static_cast<double>(heads);
    result_.first_read_bytes =
        q_read_bytes_ + static_cast<double>(std::max<std::int64_t>(high - low, 0) * p_.batch * p_.nheads_k) * kv_row;
    result_.key_tiles = key_tiles_a_head_ * heads;
  }

  void choose_resolution() {
    const std::int64_t slots = device_.num_sms * ctas_per_sm_;
    const auto average = std::max(1.0, static_cast<double>(key_tiles_a_head_) / static_cast<double>(q_tiles_));
    // at least two waves of CTAs are simulated, if need be with several key tiles an event
    const double wanted = std::min(static_cast<double>(result_.key_tiles), 2.0 * static_cast<double>(slots) * average);
    result_.key_tiles_per_event =
        static_cast<int>(std::max(1.0, std::ceil(wanted / static_cast<double>(options_.max_events))));
    // a CTA's own lines, of Q and O, cost about as much as ten key tiles
    const double cost = 10 + average / result_.key_tiles_per_event;
    const auto affordable = static_cast<std::int64_t>(static_cast<double>(options_.max_events) / cost);
    const bool all = static_cast<double>(result_.key_tiles) <= static_cast<double>(options_.max_events) &&
                     result_.ctas <= options_.max_events / 10;
    simulated_ctas_ = all ? result_.ctas : std::min(result_.ctas, std::max(2 * slots, affordable));

    const double lines_a_tile =
        static_cast<double>(plan_.tile_n) * static_cast<double>(k_.row_bytes + v_.row_bytes) / LineSampler::line_bytes +
        spill_lines();
    const double accesses =
        std::min(static_cast<double>(result_.key_tiles), static_cast<double>(simulated_ctas_) * average) * lines_a_tile;
    const std::int64_t all_sets =
        device_.l2_bytes / (device_.l2_partitions * device_.l2_ways * LineSampler::line_bytes);
    int sampling = options_.sampling != 0 ? options_.sampling : 8;
    const auto most = static_cast<double>(options_.max_line_accesses);
    if (options_.sampling == 0)  // beyond one set in 64 only where the work is huge
      while (accesses / sampling > (sampling < 64 ? most : 4 * most) && sampling < 256) sampling *= 2;
    while (sampling > 1 && all_sets / sampling < 32) sampling /= 2;
    while (all_sets / sampling > 60'000) sampling *= 2;
    result_.sampling = sampling;
  }

  /// Whether query heads that share a key head read K and V afresh, each of them, because they stand a whole batch
  /// apart in the grid and what lies between does not fit a partition of L2.
  bool heads_read_afresh() const {
    if (plan_.grid_order != GridOrder::tiles_batch_heads || p_.batch == 1 || p_.nheads == p_.nheads_k) return false;
    const std::int64_t key_bytes = p_.batch * p_.seqlen_k * (k_.row_bytes + v_.row_bytes);
    const std::int64_t query_bytes = p_.batch * p_.seqlen_q * (q_.row_bytes + o_.row_bytes);
    return key_bytes + query_bytes > device_.l2_bytes / device_.l2_partitions;
  }

  /// DRAM reads of all CTAs from those of the first ones, where each is like the ones simulated.
  double extrapolated_reads(double first_key_bytes, double again_bytes, double scale) const {
    const double exact_first = result_.first_read_bytes - q_read_bytes_;
    double keys = exact_first + again_bytes * scale;
    if (heads_read_afresh()) {
      // the first reads of the part are a later head's misses too; of a part of one head only the heads are known
      const bool whole_heads = simulated_ctas_ >= 2 * q_tiles_;
      const double afresh =
          whole_heads ? first_key_bytes * scale : exact_first * static_cast<double>(p_.nheads / p_.nheads_k);
      keys = std::max(exact_first, afresh) + again_bytes * scale;
    }
    return std::min(q_read_bytes_ + keys, std::max(result_.first_read_bytes, result_.sm_read_bytes));
  }

  double spill_lines() const { return static_cast<double>(plan_.spill_words_per_key_tile) * plan_.num_warps; }

  template <class F>
  void for_tile(const LineSampler& sampler, const TensorAddress& a, std::int64_t batch, std::int64_t head,
                std::int64_t row0, std::int64_t rows, std::int64_t limit, F&& f) const {
    for (std::int64_t row = row0; row < std::min(row0 + rows, limit); ++row) {
      const std::int64_t at = a.row(batch, head, row);
      sampler.for_lines(at, at + a.row_bytes, f);
    }
  }

  void simulate();
  void start(Slot& slot, std::int64_t cta);
  void read_query(Slot& slot);
  void read_key_tile(Slot& slot, int tile, double now);
  void finish(Slot& slot);
  void write_spill(Slot& slot, int words);
  void read_lines(std::vector<TileLine>& lines, int side);
  double merged_share(std::size_t index, std::int64_t what, double now, double first_read) const;
  double noise() {  // uniform with the standard deviation asked for
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    const double u = static_cast<double>(state_ >> 11) * 0x1p-53;
    return 1 + options_.noise * 3.4641016151377544 * (u - 0.5);
  }

  const Problem& p_;
  const KernelPlan& plan_;
  const DeviceSpec& device_;
  const TileWalkOptions& options_;
  int ctas_per_sm_;
  TensorAddress q_, k_, v_, o_;
  std::int64_t lse_base_ = 0, spill_base_ = 0;
  int q_tiles_ = 0;
  std::int64_t key_tiles_a_head_ = 0;
  std::int64_t simulated_ctas_ = 0;
  double q_read_bytes_ = 0;
  std::vector<KeyRange> ranges_;
  TileWalk result_;

  std::unique_ptr<LineSampler> sampler_;
  std::unique_ptr<L2Cache> cache_;
  std::unordered_map<std::int64_t, HeadLines> heads_;
  std::vector<Slot> slots_;
  std::vector<int> spill_turn_;
  std::uint64_t state_ = 1;
  std::int64_t missed_again_sectors_ = 0, first_key_sectors_ = 0;
  double l2_read_bytes_ = 0, sm_read_bytes_ = 0;
  std::int64_t walked_ = 0;
};

void Walk::start(Slot& slot, std::int64_t cta) {
  slot.cta = cta;
  slot.q_tile = static_cast<int>(cta % q_tiles_);
  const std::int64_t rest = cta / q_tiles_;
  const bool batch_first = plan_.grid_order == GridOrder::tiles_batch_heads;
  slot.batch = batch_first ? rest % p_.batch : rest / p_.nheads;
  slot.head = batch_first ? rest / p_.batch : rest % p_.nheads;
  const KeyRange& range = ranges_[static_cast<std::size_t>(slot.q_tile)];
  slot.tile = range.end;
  slot.begin = range.begin;
  slot.fresh = true;
  const std::int64_t key_head =
      slot.batch * p_.nheads_k +
      plan_.kv_head(static_cast<int>(slot.head), static_cast<int>(p_.nheads), static_cast<int>(p_.nheads_k));
  HeadLines& lines = heads_[key_head];
  if (lines.first_read.empty()) {
    const auto tiles = static_cast<std::size_t>((p_.seqlen_k + plan_.tile_n - 1) / plan_.tile_n);
    lines.k.resize(tiles), lines.v.resize(tiles), lines.first_read.assign(tiles, -1);
  }
  slot.lines = &lines;
  // local memory belongs to a place on the SM, and CTAs that follow each other there take the places in turn
  const int places = std::max<int>(1, static_cast<int>(device_.max_warps_per_sm) / plan_.num_warps);
  const int place = spill_turn_[static_cast<std::size_t>(slot.sm)]++ % places;
  slot.spill_address = spill_base_ + (std::int64_t{slot.sm} * places + place) *
                                         static_cast<std::int64_t>(spill_lines()) * LineSampler::line_bytes;
}

void Walk::read_query(Slot& slot) {
  std::int64_t rows = std::min<std::int64_t>(plan_.tile_m, p_.seqlen_q - std::int64_t{slot.q_tile} * plan_.tile_m);
  if (slot.begin < slot.tile) {
    l2_read_bytes_ += static_cast<double>(rows * q_.row_bytes);
    sm_read_bytes_ += static_cast<double>(rows * q_.row_bytes);
    for_tile(*sampler_, q_, slot.batch, slot.head, std::int64_t{slot.q_tile} * plan_.tile_m, plan_.tile_m, p_.seqlen_q,
             [&](const CachedLine& line) { cache_->read(line, slot.side); });
  }
}

void Walk::read_lines(std::vector<TileLine>& lines, int side) {
  for (TileLine& l : lines) {
    const L2Cache::Outcome outcome = cache_->read(l.line, side);
    if (!l.seen)
      first_key_sectors_ += l.line.sectors;
    else if (outcome == L2Cache::Outcome::miss)
      missed_again_sectors_ += l.line.sectors;
    l.seen = true;
  }
}

double Walk::merged_share(std::size_t index, std::int64_t what, double now, double first_read) const {
  const auto sms = static_cast<int>(device_.num_sms), tpc = static_cast<int>(device_.sms_per_coalescer);
  const int sm = slots_[index].sm, first = sm / tpc * tpc;
  double share = 1;
  for (int other = first; other < std::min(first + tpc, sms); ++other) {
    if (other == sm) continue;
    for (int i = 0; i < ctas_per_sm_; ++i) {
      const Slot& s = slots_[static_cast<std::size_t>(i * sms + other)];
      if (s.last_read == what)
        share = std::min(share, second_request_share(now - s.last_time, s.last_time <= first_read));
    }
  }
  return share;
}

void Walk::read_key_tile(Slot& slot, int tile, double now) {
  HeadLines& lines = *slot.lines;
  const auto at = static_cast<std::size_t>(tile);
  if (lines.first_read[at] < 0) {
    lines.first_read[at] = static_cast<float>(now);
    const std::int64_t head =
        plan_.kv_head(static_cast<int>(slot.head), static_cast<int>(p_.nheads), static_cast<int>(p_.nheads_k));
    const std::int64_t row0 = std::int64_t{tile} * plan_.tile_n;
    for_tile(*sampler_, k_, slot.batch, head, row0, plan_.tile_n, p_.seqlen_k,
             [&](const CachedLine& line) { lines.k[at].push_back({line}); });
    for_tile(*sampler_, v_, slot.batch, head, row0, plan_.tile_n, p_.seqlen_k,
             [&](const CachedLine& line) { lines.v[at].push_back({line}); });
  }
  read_lines(lines.k[at], slot.side);
  read_lines(lines.v[at], slot.side);
  const std::int64_t rows = std::min<std::int64_t>(plan_.tile_n, p_.seqlen_k - std::int64_t{tile} * plan_.tile_n);
  const auto bytes = static_cast<double>(rows * (k_.row_bytes + v_.row_bytes));
  const std::int64_t what = reinterpret_cast<std::int64_t>(&lines.first_read[at]);
  const auto index = static_cast<std::size_t>(&slot - slots_.data());
  l2_read_bytes_ += bytes * merged_share(index, what, now, lines.first_read[at]);
  sm_read_bytes_ += bytes;
  slot.last_read = what;
  slot.last_time = now;
  write_spill(slot, plan_.spill_words_per_key_tile);
  ++walked_;
}

void Walk::write_spill(Slot& slot, int words) {
  if (words == 0) return;
  const std::int64_t bytes = std::int64_t{words} * plan_.num_warps * LineSampler::line_bytes;
  sampler_->for_lines(slot.spill_address, slot.spill_address + bytes,
                      [&](const CachedLine& line) { cache_->write(line, slot.side); });
}

void Walk::finish(Slot& slot) {
  const std::int64_t row0 = std::int64_t{slot.q_tile} * plan_.tile_m,
                     rows = std::min<std::int64_t>(plan_.tile_m, p_.seqlen_q - row0);
  const auto write = [&](const CachedLine& line) { cache_->write(line, slot.side); };
  for_tile(*sampler_, o_, slot.batch, slot.head, row0, plan_.tile_m, p_.seqlen_q, write);
  const std::int64_t lse = lse_base_ + 4 * ((slot.batch * p_.nheads + slot.head) * p_.seqlen_q + row0);
  sampler_->for_lines(lse, lse + 4 * rows, write);
}

void Walk::simulate() {
  sampler_ = std::make_unique<LineSampler>(device_, result_.sampling);
  cache_ = std::make_unique<L2Cache>(static_cast<int>(device_.l2_partitions), sampler_->sets(),
                                     static_cast<int>(device_.l2_ways), static_cast<int>(device_.l2_dirty_ways));
  const auto sms = static_cast<int>(device_.num_sms);
  spill_turn_.assign(static_cast<std::size_t>(sms), 0);
  slots_.resize(static_cast<std::size_t>(sms * ctas_per_sm_));
  std::vector<int> active(static_cast<std::size_t>(sms), 0);
  using Event = std::pair<double, int>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  std::int64_t next = 0;
  double busy = 0, end = 0, steady_cycles = 0;
  // tiles are counted when a CTA begins them: on average half an event's are still to do
  const double in_flight = static_cast<double>(slots_.size()) * result_.key_tiles_per_event / 2;
  double steady_tiles = 0;
  for (int i = 0; i < static_cast<int>(slots_.size()) && next < simulated_ctas_; ++i) {
    Slot& slot = slots_[static_cast<std::size_t>(i)];
    slot.sm = i % sms;
    // a plain grid fills cluster by cluster of SMs, and every cluster is wholly on one side
    slot.side = device_.l2_partitions == 1 ? 0 : slot.sm * 8 / sms % 2;
    start(slot, next++);
    ++active[static_cast<std::size_t>(slot.sm)];
    events.emplace(0.0, i);
  }
  while (!events.empty()) {
    const auto [now, index] = events.top();
    events.pop();
    Slot& slot = slots_[static_cast<std::size_t>(index)];
    double cycles = 0;
    if (slot.fresh) {
      slot.fresh = false;
      read_query(slot);
      cycles = options_.cycles_per_cta / 2;
    } else if (slot.begin < slot.tile) {
      const int tiles = std::min(result_.key_tiles_per_event, slot.tile - slot.begin);
      for (int t = 0; t < tiles; ++t) read_key_tile(slot, --slot.tile, now);
      const auto sharing = static_cast<std::size_t>(active[static_cast<std::size_t>(slot.sm)]);
      cycles = tiles * options_.cycles_per_key_tile[sharing - 1] * noise();
    } else {
      write_spill(slot, plan_.spill_words_per_cta);
      finish(slot);
      cycles = options_.cycles_per_cta / 2;
      end = std::max(end, now + cycles);
      if (next < simulated_ctas_) {
        start(slot, next++);
        steady_cycles = now;
        steady_tiles = static_cast<double>(walked_) - in_flight;
      } else {
        --active[static_cast<std::size_t>(slot.sm)];
        busy += now + cycles;
        continue;
      }
    }
    events.emplace(now + cycles, index);
  }

  const double scale = walked_ == 0 ? 1 : static_cast<double>(result_.key_tiles) / static_cast<double>(walked_);
  const auto bytes = [&](std::int64_t sectors) {
    return static_cast<double>(sectors) * LineSampler::sector_bytes * result_.sampling;
  };
  result_.simulated_fraction = 1 / scale;
  result_.dram_read_bytes = scale == 1
                                ? result_.first_read_bytes + bytes(missed_again_sectors_)
                                : extrapolated_reads(bytes(first_key_sectors_), bytes(missed_again_sectors_), scale);
  result_.l2_read_bytes = sm_read_bytes_ == 0 ? 0 : result_.sm_read_bytes * (l2_read_bytes_ / sm_read_bytes_);
  result_.dirty_bytes_left = bytes(cache_->dirty_sectors());
  result_.dram_write_bytes = bytes(cache_->written_back_sectors()) * scale;
  const auto slots = static_cast<double>(slots_.size());
  // what is not simulated goes at the rate at which all slots were full
  const auto left = static_cast<double>(result_.key_tiles - walked_);
  result_.cycles = end + (left == 0 || steady_tiles <= 0 ? 0 : left * steady_cycles / steady_tiles);
  result_.busy_fraction = busy / (slots * end);
}

}  // namespace

TileWalk walk_tiles(const Case& c, const KernelPlan& plan, const DeviceSpec& device, int ctas_per_sm,
                    const TileWalkOptions& options) {
  return Walk(c, plan, device, ctas_per_sm, options).run();
}

}  // namespace attest
