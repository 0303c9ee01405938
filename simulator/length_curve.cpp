#include "attest/simulator/length_curve.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

constexpr std::size_t max_points = 7;
constexpr std::int64_t shortest = 64;     // below that launches decide
constexpr double walked_at_most = 1.5e6;  // key tiles; a walk extrapolates beyond (TileWalkOptions::max_events)

LengthPoint point_of(const SimulationReport& r) {
  return {.seqlen_q = r.c.problem.seqlen_q,
          .seqlen_k = r.c.problem.seqlen_k,
          .time_us = r.time_us + r.kernels * 1e6 * r.device.launch_overhead_seconds,
          .unfused_time_us = r.unfused.time_us,
          .dram_bytes = r.dram_read_bytes + r.dram_write_bytes,
          .unfused_dram_bytes = r.unfused.dram_read_bytes + r.unfused.dram_write_bytes,
          .compulsory_bytes = r.compulsory_bytes,
          .bound = r.bound};
}

std::string why_none(const Case& c) {
  const Problem& p = c.problem;
  if (!p.varlen_q.empty() || !p.varlen_k.empty() || !p.seqused_k.empty())
    return "each batch entry has a length of its own";
  if (!p.documents.empty()) return "the lengths of documents are given";
  if (!c.layout.page_table.empty()) return "the page table is given";
  if (c.backward) return "the backward is not drawn";
  return p.seqlen_q == 0 || p.seqlen_k == 0 ? "there is nothing to compute" : "";
}

/// The case at 2^shift times its length; none where that is no length.
std::optional<Case> scaled(Case c, int shift) {
  Problem& p = c.problem;
  const bool square = p.seqlen_q == p.seqlen_k;
  const auto scale = [&](std::int64_t n) { return shift < 0 ? n >> -shift : n << shift; };
  if (shift < 0 && (scale(p.seqlen_k) < shortest || p.seqlen_k % (std::int64_t{1} << -shift) != 0)) return std::nullopt;
  p.seqlen_k = scale(p.seqlen_k);
  if (square) p.seqlen_q = p.seqlen_k;
  return c;
}

}  // namespace

LengthCurve length_curve(const SimulationReport& report, double max_key_tiles) {
  LengthCurve curve;
  curve.why_none = why_none(report.c);
  if (!curve.why_none.empty()) return curve;
  curve.points.push_back(point_of(report));
  const bool square = report.c.problem.seqlen_q == report.c.problem.seqlen_k;
  const auto cost = [&](int shift) {  // of a walk
    const double growth = std::exp2(square ? 2.0 * shift : shift);
    return std::min(growth * static_cast<double>(report.walk.key_tiles), walked_at_most);
  };
  double walked = 0;
  for (const int shift : {-1, 1, -2, 2, -3, -4, 3, -5, 4, 5, 6}) {
    if (curve.points.size() == max_points) break;
    const std::optional<Case> c = scaled(report.c, shift);
    if (!c || walked + cost(shift) > max_key_tiles) continue;
    walked += cost(shift);
    try {
      curve.points.push_back(point_of(simulate(*c, with_layout(report.plan, *c), report.device, report.plan_name)));
    } catch (const InvalidInput&) {
      continue;  // too long for what a case may be, or for the plan: the curve ends before it
    }
  }
  std::sort(curve.points.begin(), curve.points.end(), [](const LengthPoint& a, const LengthPoint& b) {
    return std::pair{a.seqlen_k, a.seqlen_q} < std::pair{b.seqlen_k, b.seqlen_q};
  });
  return curve;
}

}  // namespace attest
