#include "line_requests.h"

#include <algorithm>

#include "box_beyond.h"

namespace attest {
namespace {

constexpr std::int64_t line = LineSampler::line_bytes, sector = LineSampler::sector_bytes;
constexpr double of_parted_line = 0.5;  // alignment: 0.3 to 0.6

std::int64_t box_row_bytes(const KernelPlan& plan, Operand x) {
  return std::int64_t{plan.panel_layout(x).panel_chunks()} * 16;
}

/// Of the bytes [begin, end), copied in panels of so many, those that merge as they may; `gap` bytes lie between them
/// and their neighbours'.
double merging_bytes(std::int64_t begin, std::int64_t end, std::int64_t panel, std::int64_t gap) {
  double merging = 0;
  for (std::int64_t from = begin; from < end;) {
    const std::int64_t first = from / line * line, to = std::min(end, first + line);
    const bool panels = (from - begin) / panel != (to - 1 - begin) / panel;
    const bool halves = to == end && end % sector != 0;
    const bool neighbours = (from == begin && begin - gap > first) || (to == end && end + gap < first + line);
    merging += static_cast<double>(to - from) * (panels || halves || neighbours ? of_parted_line : 1);
    from = to;
  }
  return merging;
}

constexpr std::int64_t chunk = 16, lanes_of_wavefront = 8;

/// As asked_part(), of cp.async of 16 bytes, of which rows have one or more: a wavefront's lanes that begin within a
/// sector ask for a sector each. Of those that go on in the next line L2 is asked for each sector once, where they are
/// even in number.
double asked_of_chunks(const KernelPlan& plan, Operand x, const TensorAddress& rows, std::int64_t heads) {
  const std::int64_t together = std::min<std::int64_t>(plan.copy_lanes(x), lanes_of_wavefront) * chunk;
  constexpr std::int64_t period = line / chunk;
  std::int64_t brought = 0, asked = 0;  // sectors
  for (std::int64_t head = 0; head < std::min(heads, period); ++head)
    for (std::int64_t row = 0; row < period; ++row) {
      const std::int64_t begin = rows.row(0, head, row), end = begin + rows.row_bytes;
      for (std::int64_t from = begin; from < end; from += together) {
        const std::int64_t to = std::min(end, from + together), next_line = (from / line + 1) * line;
        if (from % sector == 0) {
          brought += (to - from + sector - 1) / sector, asked += (to - from + sector - 1) / sector;
          continue;
        }
        if (to - from == chunk && from > begin && from % line == chunk) {
          ++brought;  // it shares the line's first sector with the lane before, which goes on there
          continue;
        }
        const std::int64_t lanes = (to - from) / chunk, behind = std::max<std::int64_t>(0, to - next_line) / chunk;
        brought += lanes, asked += behind % 2 == 0 ? lanes - behind / 2 : lanes;
      }
    }
  return static_cast<double>(asked) / static_cast<double>(brought);
}

}  // namespace

bool boxes_are_lines(const KernelPlan& plan, Operand x) {
  return plan.copy_kind == CopyKind::tma && box_row_bytes(plan, x) == line;
}

double asked_part(const KernelPlan& plan, Operand x, const TensorAddress& rows, std::int64_t heads) {
  if (plan.copy_kind == CopyKind::cp_async && plan.copy_bytes(x) == chunk) return asked_of_chunks(plan, x, rows, heads);
  if (!boxes_are_lines(plan, x)) return 1;
  std::int64_t brought = 0, twice = 0;
  for (std::int64_t head = 0; head < std::min<std::int64_t>(heads, 64); ++head)
    for (std::int64_t row = 0; row < plan.rows(x); ++row) {
      const std::int64_t begin = rows.row(0, head, row), end = begin + rows.row_bytes;
      const ByteRange beyond = asked_beyond(begin, rows.row_bytes, row);
      brought += rows.row_bytes + beyond.last - beyond.first;
      twice += std::max<std::int64_t>(0, std::min(end, beyond.last) - std::max(begin, beyond.first));
    }
  return 1 - static_cast<double>(twice) / static_cast<double>(brought);
}

double merging_part(const KernelPlan& plan, Operand x, const TensorAddress& rows, std::int64_t heads) {
  const bool cp_async = plan.copy_kind == CopyKind::cp_async, boxes = plan.copy_kind == CopyKind::tma;
  // what goes through registers is waited for, before other parts of its lines are asked for
  if (!boxes && (!cp_async || plan.copy_bytes(x) < 4)) return 1;
  const bool through_l1 = cp_async && plan.copy_bytes(x) < 16;  // which asks for a line once
  // what a wavefront of cp.async moves goes to one line of shared memory (copy_cost())
  const std::int64_t panel = boxes        ? box_row_bytes(plan, x)
                             : through_l1 ? rows.row_bytes
                                          : std::min(line, std::int64_t{plan.copy_lanes(x)} * plan.copy_bytes(x));
  constexpr std::int64_t period = line / 2;  // of starts that are multiples of two bytes
  double merging = 0, asked = 0;             // bytes
  for (std::int64_t head = 0; head < std::min(heads, period); ++head)
    for (std::int64_t row = 0; row < std::min<std::int64_t>(plan.tile_n, period); ++row) {
      const std::int64_t begin = rows.row(0, head, row) % line;
      // a box's columns beyond the tensor's are in lines whose other parts are some row's own
      const ByteRange beyond = boxes_are_lines(plan, x) ? asked_beyond(begin, rows.row_bytes, row) : ByteRange{};
      const auto bytes_beyond = static_cast<double>(beyond.last - beyond.first);
      asked += static_cast<double>(rows.row_bytes) + bytes_beyond;
      if (cp_async && !through_l1 && begin % sector != 0) continue;  // sectors are asked for twice, by halves
      merging += merging_bytes(begin, begin + rows.row_bytes, panel, rows.gap(heads)) + of_parted_line * bytes_beyond;
    }
  return merging / asked;
}

double merging_part(const KernelPlan& plan, const TensorAddress& k, const TensorAddress& v, std::int64_t heads) {
  const auto of_k = static_cast<double>(k.row_bytes), of_v = static_cast<double>(v.row_bytes);
  return (of_k * merging_part(plan, Operand::k, k, heads) + of_v * merging_part(plan, Operand::v, v, heads)) /
         (of_k + of_v);
}

}  // namespace attest
