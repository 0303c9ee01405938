#include "power_measure.h"

#include <algorithm>
#include <cmath>

#include "attest/fuzz/properties.h"
#include "power_peers.h"

namespace attest::power {
namespace {

constexpr std::int64_t heads_of_many_rows = 32;

Case case_of(const Grid& grid, std::int64_t keys, bool causal, Dtype dtype, std::int64_t heads, int number) {
  Case c;
  c.problem.seqlen_q = grid.seqlen_q;
  c.problem.seqlen_k = keys;
  c.problem.headdim = c.problem.headdim_v = grid.headdim;
  c.problem.nheads = heads;
  c.problem.dtype = dtype;
  c.problem.causal = causal ? Causal::bottom_right : Causal::none;
  c.seed = static_cast<std::uint64_t>(number) + 1;
  return c;
}

std::string name_of(const RuleFinding& finding) {
  if (finding.rule == "worst case") return finding.channel == "o" ? "O bound" : "LSE bound";
  if (finding.rule == "statistical row") return "R";
  return finding.rule == "statistical block" ? "G" : "z_LSE";
}

double spacing(double x, int significant_bits) {
  return x == 0 ? 0 : std::ldexp(1.0, std::ilogb(x) + 1 - significant_bits);
}

void see_effect(const Outputs& got, const Outputs& right, Dtype dtype, Cell& cell) {
  const auto columns = static_cast<std::size_t>(right.o.extents[3]);
  for (std::size_t first = 0; first < right.o.values.size(); first += columns) {
    double change = 0, rounding = 0;
    for (std::size_t n = first; n < first + columns; ++n) {
      change += std::pow(got.o.values[n] - right.o.values[n], 2);
      rounding += std::pow(spacing(right.o.values[n], dtype == Dtype::fp16 ? 11 : 8), 2) / 12;
    }
    cell.effect_o = std::max(cell.effect_o, std::sqrt(change / rounding));
  }
  for (std::size_t n = 0; n < right.lse->values.size(); ++n) {
    const double change = std::abs(got.lse->values[n] - right.lse->values[n]);
    cell.effect_lse = std::max(cell.effect_lse, change / spacing(right.lse->values[n], 24));
  }
}

// What several faults of one problem share.
struct Prepared {
  Case c;
  Inputs inputs;
  Truth truth;
  Baselines baselines;
  Outputs right;
};

Prepared prepare(const Case& c, ForwardBuffers& buffers) {
  const std::unique_ptr<Kernel> kernel = planted_faults()[0].make();
  Prepared p{c, make_inputs(c), {}, {}, {}};
  p.truth = forward_with_budget(c.problem, p.inputs, kernel->numerics(c), true);
  p.baselines = low_precision(c.problem, p.inputs);
  p.right = buffers.run(*kernel, c, p.inputs).outputs;
  return p;
}

bool is_probe(const Property& property, const Case& c, bool many_rows) {
  for (const std::string_view other : {"hazards", "reference", "gqa", "batch"})
    if (property.name == other) return false;
  if (!property.applies(c)) return false;
  return !many_rows || (property.name != "shift" && property.name != "key_permutation");  // minutes of truths
}

void put_to_rules(const Prepared& p, Kernel& kernel, ForwardBuffers& buffers, bool probes, Cell& cell) {
  const Outputs outputs = buffers.run(kernel, p.c, p.inputs).outputs;
  see_effect(outputs, p.right, p.c.problem.dtype, cell);
  std::vector<RuleFinding> findings;
  bool seen = compare(p.c.problem, p.truth, outputs, &findings).status != Status::passed;
  for (const RuleFinding& finding : findings) {
    Share& rows = cell.rows[name_of(finding)];
    const bool one_of_many = p.c.problem.nheads > 1;  // what counts is whether that row is seen
    rows.of += one_of_many ? 1 : finding.judged;
    rows.over += one_of_many ? finding.error_over_budget > 1 : finding.over;
    Share& problems = cell.ours[name_of(finding)];
    ++problems.of;
    problems.over += finding.error_over_budget > 1;
  }
  for (const PeerVerdict& peer : peer_verdicts(p.c.problem, p.truth.forward, p.baselines, outputs)) {
    ++cell.peers[peer.name].of;
    cell.peers[peer.name].over += peer.accuses;
  }
  if (!probes) return;
  Trial trial(kernel, buffers, p.c);
  for (const Property& property : properties()) {
    if (!is_probe(property, p.c, p.c.problem.nheads > 1)) continue;
    const bool accused = judge(property, trial).status != Status::passed;
    ++cell.ours[property.name].of;
    cell.ours[property.name].over += accused;
    seen |= accused;
  }
  ++cell.ours[together].of;
  cell.ours[together].over += seen;
}

// The last step at which `seen` holds, going from the first; `none` if it does not hold there.
template <class Seen>
int last_seen(int first, int last, int none, Seen seen) {
  for (int at = first; at <= last; ++at)
    if (!seen(at)) return at == first ? none : at - 1;
  return last;
}

}  // namespace

Share& Shares::operator[](std::string_view name) {
  for (auto& [known, share] : shares_)
    if (known == name) return share;
  return shares_.emplace_back(std::string(name), Share{}).second;
}

std::vector<Cell> measure(const Grid& grid, std::int64_t keys, bool causal, Dtype dtype) {
  ForwardBuffers buffers;
  std::vector<Cell> cells;
  for (const PlantedFault& fault : planted_faults()) {
    Cell& cell = cells.emplace_back();
    cell.fault = fault.name;
    cell.keys = keys, cell.headdim = grid.headdim, cell.causal = causal, cell.dtype = dtype;
  }
  const auto put_all = [&](bool many_rows, int number) {
    const Case c = case_of(grid, keys, causal, dtype, many_rows ? heads_of_many_rows : 1, number);
    const Prepared p = prepare(c, buffers);
    for (std::size_t n = 0; n < cells.size(); ++n) {
      const PlantedFault& fault = planted_faults()[n];
      if (fault.needs_many_rows != many_rows) continue;
      put_to_rules(p, *fault.make(), buffers, number < grid.problems_for_probes, cells[n]);
    }
  };
  for (int number = 0; number < grid.problems; ++number) put_all(false, number);
  if (keys <= grid.most_keys_of_many_rows) put_all(true, 0);
  std::erase_if(cells, [](const Cell& cell) { return cell.rows.all().empty(); });
  return cells;
}

Detectable detectable(const Grid& grid, std::int64_t keys, Dtype dtype) {
  ForwardBuffers buffers;
  const Case c = case_of(grid, keys, false, dtype, 1, 0);
  const Prepared p = prepare(c, buffers);
  const auto budgets_see = [&](Kernel& kernel) {
    return compare(c.problem, p.truth, buffers.run(kernel, c, p.inputs).outputs).status != Status::passed;
  };
  const auto probe_sees = [&](std::string_view probe, Kernel& kernel) {
    Trial trial(kernel, buffers, c);
    return judge(property_named(probe), trial).status != Status::passed;
  };
  const auto scale = [&](auto seen) {
    const int power = last_seen(4, 24, 0, [&](int at) { return seen(*kernel_with_scale_error(std::ldexp(1.0, -at))); });
    return power == 0 ? 0 : std::ldexp(1.0, -power);
  };
  Detectable d{keys, dtype};
  d.scale_by_budgets = scale(budgets_see);
  d.scale_by_lookup = scale([&](Kernel& kernel) { return probe_sees("lookup", kernel); });
  d.output_bits_by_budgets = last_seen(4, 23, 0, [&](int bits) { return budgets_see(*kernel_with_output_bits(bits)); });
  d.output_bits_by_probe =
      last_seen(4, 23, 0, [&](int bits) { return probe_sees("accumulator", *kernel_with_output_bits(bits)); });
  return d;
}

}  // namespace attest::power
