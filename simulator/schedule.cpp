#include "schedule.h"

#include <algorithm>
#include <bit>
#include <compare>

#include "address.h"

namespace attest {
namespace {

/// Query heads in a section: as many key heads as have their K and V in it, a power of two, with all of their queries.
std::int64_t heads_a_section(const Grid& grid) {
  const std::int64_t room = grid.plan.l2_section_bytes;
  if (room == 0) return 0;
  const std::int64_t bytes = std::max<std::int64_t>(1, grid.p.seqlen_k * grid.key_row_bytes());
  const auto fit = static_cast<std::uint64_t>(std::max<std::int64_t>(1, room / bytes));
  return static_cast<std::int64_t>(std::bit_floor(fit)) * (grid.nheads / grid.p.nheads_k);
}

}  // namespace

Schedule::Schedule(const Grid& grid, const DeviceSpec& device, int ctas_per_sm)
    : grid_(grid),
      device_(device),
      cluster_(grid.plan.cluster),
      round_(std::max(1, static_cast<int>(device.num_sms) / cluster_)),
      slots_(round_ * ctas_per_sm),
      fixed_(grid.plan.persistence == Persistence::static_stride),
      groups_((grid.q_tiles + cluster_ - 1) / cluster_),
      section_(heads_a_section(grid)),
      tasks_(groups_ * grid.splits * grid.p.batch * grid.nheads) {
  for (int i = 0; i < round_; ++i) sms_.push_back(i * cluster_);
  struct Place {
    int tpc, gpc, sm;  // the TPC's number in its GPC
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places;
  for (int sm = 0, first = 0; sm < static_cast<int>(device.num_sms); ++sm) {
    if (gpc_of(sm) != gpc_of(first)) first = sm;
    places.push_back({(sm - first) / 2, gpc_of(sm), sm});
  }
  std::ranges::sort(places);
  numbers_.resize(places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    numbers_[static_cast<std::size_t>(places[i].sm)] = static_cast<int>(i);
  if (grid.plan.persistence == Persistence::dynamic && grid.plan.counts_first_tile)
    std::sort(sms_.begin(), sms_.end(), [&](int a, int b) { return arrival(a) < arrival(b); });
}

Task Schedule::task(std::int64_t index) const {
  const Problem& p = grid_.p;
  Task t;
  std::int64_t group = 0;
  if (section_ == 0) {
    group = index % groups_;
    const std::int64_t rest = index / groups_, member = rest / grid_.splits;
    t.split = static_cast<int>(rest % grid_.splits);
    const bool batch_first = grid_.plan.grid_order == GridOrder::tiles_batch_heads;
    t.batch = batch_first ? member % p.batch : member / grid_.nheads;
    t.head = batch_first ? member / p.batch : member % grid_.nheads;
  } else {
    const std::int64_t a_head = groups_ * grid_.splits, members = p.batch * grid_.nheads;
    const std::int64_t first = index / (section_ * a_head) * section_, in = index - first * a_head;
    const std::int64_t heads = std::min(section_, members - first), member = first + in % heads;
    group = in / heads % groups_;
    t.split = static_cast<int>(in / heads / groups_);
    t.batch = member / grid_.nheads;
    t.head = member % grid_.nheads;
  }
  if (grid_.plan.longest_first) group = groups_ - 1 - group;
  t.q_tile = static_cast<int>(group) * cluster_;
  return t;
}

// GPCs begin their CTAs beside each other, so that those of a side come in any order; the other side's requests take
// longer (docs/results/h200-l2.md, dispatch). By how much was chosen on what cuDNN's calls of one wave crossed
// (h200_cudnn_waves.csv); dispatch's own kernels mix sides less, 0 to 20 of 132 CTAs.
double Schedule::arrival(int sm) const {
  constexpr double far = 2.0 / 3;
  return static_cast<double>(mix(static_cast<std::uint64_t>(sm)) >> 11) * 0x1p-53 + far * side_of(gpc_of(sm));
}

int Schedule::gpc_of(int sm) const { return sm * device_.gpcs() / static_cast<int>(device_.num_sms); }

int Schedule::side_of(int gpc) const {
  return device_.l2_partitions == 1 ? 0 : static_cast<int>(device_.gpc_sides[static_cast<std::size_t>(gpc)]);
}

int Schedule::sm(int slot) const { return sms_[static_cast<std::size_t>(slot % round_)]; }

std::vector<int> Schedule::spread_sms(std::int64_t n, std::int64_t tasks) const {
  const std::int64_t in_use = std::min<std::int64_t>(slots_a_round(), tasks), some = std::min(n, in_use);
  std::vector<int> sms;
  for (std::int64_t i = 0; i < some; ++i) sms.push_back(sm(static_cast<int>(i * in_use / some)));
  return sms;
}

int Schedule::gpc(int slot) const { return cluster_ > 1 ? slot % device_.gpcs() : gpc_of(sm(slot)); }

int Schedule::side(int slot) const { return side_of(gpc(slot)); }

}  // namespace attest
