#include "attest/simulator/bank_map.h"

#include <algorithm>
#include <array>
#include <optional>

#include "attest/simulator/case_counts.h"
#include "attest/simulator/counts.h"

namespace attest {
namespace {

using Kind = SharedAccess::Kind;

/// Where bytes of that kind go: into shared memory from outside, from registers, or out of it.
double SharedTraffic::*direction_of(Kind kind) {
  switch (kind) {
    case Kind::fill_async:
    case Kind::fill_sync:
    case Kind::fill_bulk:
      return &SharedTraffic::fill_bytes;
    case Kind::stage:
      return &SharedTraffic::write_bytes;
    case Kind::load_matrix:
    case Kind::load_word:
    case Kind::load_staged:
    case Kind::multiply:
      break;
  }
  return &SharedTraffic::read_bytes;
}

/// The first access to each operand by which matrix steps read it.
struct FirstReads {
  std::array<std::optional<SharedAccess>, 4> of;
  void shared(const SharedAccess& a) {
    if (a.kind != Kind::load_matrix && a.kind != Kind::load_word) return;
    auto& first = of[static_cast<std::size_t>(a.operand)];
    if (!first) first = a;
  }
  void global(const GlobalAccess&) {}
  void matrix_step() {}
  void exponentials(int, int) {}
};

FirstReads first_reads(const KernelPlan& plan) {
  FirstReads reads;
  if (plan.producer_warps != 0) return reads;
  Work work;
  work.seqlen_q = plan.tile_m;
  work.seqlen_k = plan.tile_n;
  const Program program = record(plan, work);
  for (const Step& step : program.warps.front())
    if (step.kind == Step::Kind::load_query || step.kind == Step::Kind::scores || step.kind == Step::Kind::output)
      expand(plan, work, step, 0, reads);
  return reads;
}

/// The unswizzled place of a byte of a tile.
BankLane lane_at(const SmemLayout& layout, std::uint32_t offset, int bytes) {
  const int row = static_cast<int>(offset / layout.row_bytes()), in_row = static_cast<int>(offset % layout.row_bytes());
  return {.row = row,
          .byte = layout.swizzle(row, in_row / 16) * 16 + in_row % 16,  // an XOR undoes itself
          .bank = static_cast<int>(offset / 4 % 32),
          .num_banks = std::max(1, bytes / 4)};
}

/// Lanes that a wavefront without conflicts would serve together.
std::vector<BankLane> first_group(const SmemLayout& layout, std::uint32_t base, const SharedAccess& a) {
  std::vector<BankLane> lanes;
  const int group = std::clamp(128 / a.bytes, 1, 32);
  for (int lane = 0; lane < group; ++lane)
    if ((a.active >> lane & 1) != 0)
      lanes.push_back(lane_at(layout, a.address[static_cast<std::size_t>(lane)] - base, a.bytes));
  return lanes;
}

/// Distinct rows in the fullest bank; lanes that read the same word share it.
int ways_of(const std::vector<BankLane>& lanes) {
  std::array<std::vector<std::pair<int, int>>, 32> words;
  for (const BankLane& lane : lanes)
    for (int b = 0; b < lane.num_banks; ++b) {
      auto& bank = words[static_cast<std::size_t>((lane.bank + b) % 32)];
      const std::pair<int, int> word{lane.row, lane.byte / 4 + b};
      if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
    }
  std::size_t most = 0;
  for (const auto& bank : words) most = std::max(most, bank.size());
  return static_cast<int>(most);
}

/// `layout`: of the tile, SmemLayout or PanelLayout. A wgmma reads 8 rows of 16 bytes at a time, as ldmatrix does.
template <class Layout>
TileBanks tile_in(const Layout& layout, Operand x, int rows) {
  TileBanks tile;
  tile.operand = x;
  for (int row = 0; row < rows; ++row) tile.first_banks.push_back(static_cast<int>(layout.offset({row, 0}) / 4 % 32));
  for (int row = 0; row < std::min(8, rows); ++row)
    tile.lanes.push_back({.row = row, .byte = 0, .bank = tile.first_banks[static_cast<std::size_t>(row)]});
  return tile;
}

TileBanks tile_banks(const KernelPlan& plan, Operand x, const std::optional<SharedAccess>& read) {
  const bool panels = plan.producer_warps != 0;
  TileBanks tile = panels ? tile_in(plan.panel_layout(x), x, plan.rows(x)) : tile_in(plan.layout(x), x, plan.rows(x));
  if (read) tile.lanes = first_group(plan.layout(x), plan.base(x, 0), *read);
  tile.ways = ways_of(tile.lanes);
  return tile;
}

}  // namespace

BankMap bank_map(const Case& c, const KernelPlan& plan, bool swizzled) {
  KernelPlan asked = plan;
  asked.swizzled = swizzled;
  BankMap map;
  map.swizzled = swizzled;
  const FirstReads reads = first_reads(asked);
  for (const Operand x : {Operand::q, Operand::k, Operand::v})
    map.tiles.push_back(tile_banks(asked, x, reads.of[static_cast<std::size_t>(x)]));
  const Counts counts = count_case(c, asked);
  map.kinds = wavefronts_by_access(counts);
  for (std::size_t k = 0; k < counts.ideal_by_kind.size(); ++k)
    map.traffic.*direction_of(static_cast<Kind>(k)) += 128.0 * static_cast<double>(counts.ideal_by_kind[k]);
  return map;
}

}  // namespace attest
