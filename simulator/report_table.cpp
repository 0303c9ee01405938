#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attest/simulator/report.h"
#include "attest/simulator/unified_buffer.h"
#include "case_words.h"
#include "units.h"

namespace attest {
namespace {

using units::bytes, units::flops, units::percent, units::scaled, units::time;

struct Table {
  std::string text;
  void row(std::string_view what, std::string_view fused, std::string_view unfused, std::string_view note = "") {
    std::string line = fmt::format("  {:<22}{:>14}{:>14}   {}", what, fused, unfused, note);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
};

std::string utilisation_line(const std::vector<Utilisation>& utilisation) {
  std::string line;
  for (const Utilisation& u : utilisation)
    line += fmt::format("{}{} {:.0f}%", line.empty() ? "" : ", ", u.resource, 100 * u.fraction);
  return line;
}

/// How far from the ideal, and the kind of access with the worst conflict.
std::string conflicts(const SimulationReport& r) {
  if (r.smem_wavefronts == r.smem_wavefronts_ideal) return "no bank conflicts";
  const auto worst = std::max_element(r.smem_accesses.begin(), r.smem_accesses.end(),
                                      [](auto& a, auto& b) { return a.ways < b.ways; });
  return fmt::format("{:.3f} times the ideal, up to {}-way: {} ({})",
                     r.smem_wavefronts / std::max(1.0, r.smem_wavefronts_ideal), worst->ways, worst->use,
                     worst->instruction);
}

std::string spill_words(const SimulationReport& r) {
  const std::string each = bytes(r.spill_bytes_per_thread) + " spilled";
  const std::string consumers =
      r.parked_bytes_per_thread == 0 ? each : each + " a key tile, " + bytes(r.parked_bytes_per_thread) + " once";
  const int producer = r.registers.producer_stack_words;
  return producer == 0 ? consumers : consumers + fmt::format(", {} by the thread that copies", bytes(4.0 * producer));
}

std::string cube_vector_line(const SimulationReport& r) {
  const double exchanged = exchange_bytes(r.plan, r.device, r.walk.key_tiles);
  return fmt::format("a query tile: {} of a vector core's unified buffer; S, P and P V between the cores: {}\n",
                     bytes(r.smem_bytes_per_cta), exchanged == 0 ? "not through L2" : bytes(exchanged) + " through L2");
}

std::string change(double from, const std::optional<double>& to) {
  if (!to) return "refused";
  if (from == 0 && *to != 0) return "from 0";
  const double percents = from == 0 ? 0 : 100 * (*to - from) / std::abs(from);
  if (std::abs(percents) < 0.05) return "0%";
  return fmt::format("{:+.{}f}%", percents, std::abs(percents) < 10 ? 1 : 0);
}

/// How many of the device's fields are estimates and, where it was asked, which figures move with which.
std::string estimates_lines(const SimulationReport& r) {
  const std::string count = fmt::format("{} of the {} fields of {} are estimates", r.device.num_estimates(),
                                        r.device.origins.size(), r.device.name);
  if (r.device.num_estimates() == 0) return "no field of " + r.device.name + " is an estimate\n";
  if (!r.hangs_on) return count + "; --sensitivity says which figures move with which\n";
  std::string text = count + (r.hangs_on->empty() ? "; halved or doubled, none moves a figure by more than 1%\n"
                                                  : "; halved / doubled, these move figures by more than 1%:\n");
  for (const Estimate& e : *r.hangs_on) {
    std::vector<std::string> moves;
    for (const FigureMove& f : e.figures)
      moves.push_back(fmt::format("{} {} / {}", f.name, change(f.value, f.halved), change(f.value, f.doubled)));
    if (!e.halved_refused.empty()) moves.push_back(fmt::format("halved it is refused: {}", e.halved_refused));
    if (!e.doubled_refused.empty()) moves.push_back(fmt::format("doubled it is refused: {}", e.doubled_refused));
    text += fmt::format("  {:<29} {}\n", e.field, fmt::join(moves, ", "));
  }
  return text;
}

}  // namespace

std::string to_table(const SimulationReport& r) {
  const UnfusedCost& u = r.unfused;
  const double moved = r.dram_read_bytes + r.dram_write_bytes;
  Table t;
  t.text = fmt::format("{}\n{}, plan {} ({} x {} tiles, {} warps, {} stage{})\n\n", case_words(r.c),
                       r.device.description, r.plan_name, r.plan.tile_m, r.plan.tile_n, r.plan.num_warps, r.plan.stages,
                       r.plan.stages == 1 ? "" : "s");
  t.row("", "fused", "unfused");
  t.row("DRAM read", bytes(r.dram_read_bytes), bytes(u.dram_read_bytes));
  t.row("DRAM written", bytes(r.dram_write_bytes), bytes(u.dram_write_bytes),
        fmt::format("{} more still in L2 at the end", bytes(r.walk.dirty_bytes_left)));
  t.row("DRAM in all", bytes(moved), bytes(u.dram_read_bytes + u.dram_write_bytes),
        fmt::format("{} {} than unfused, code aside; compulsory {}", percent(std::abs(r.hbm_reduction_vs_unfused)),
                    r.hbm_reduction_vs_unfused < 0 ? "more" : "less", bytes(r.compulsory_bytes)));
  t.row("L2 to SMs", bytes(r.l2_read_bytes), bytes(u.l2_read_bytes),
        fmt::format("{} asked for by the SMs", bytes(r.sm_read_bytes)));
  if (r.device.l2_partitions > 1) t.row("between L2's partitions", bytes(r.l2_crossing_bytes), "", "read and written");
  t.row("SMs to L2", bytes(r.sm_write_bytes), bytes(u.sm_write_bytes),
        r.spill_store_bytes + r.spill_load_bytes == 0
            ? ""
            : fmt::format("{} of spill included; {} of it loaded from L1", bytes(r.spill_store_bytes),
                          bytes(r.spill_load_bytes)));
  t.row("shared memory", scaled(r.smem_wavefronts, 1000, {"waves", "kwaves", "Mwaves", "Gwaves", "Twaves"}), "",
        conflicts(r));
  t.row("arithmetic", flops(r.flops_executed), flops(u.flops),
        fmt::format("{} needed behind the mask", flops(r.flops)));
  t.row("kernels", fmt::format("{}", r.kernels), fmt::format("{}", UnfusedCost::kernels));
  t.row("time", time(r.time_us), time(u.time_us),
        r.time_us == 0 ? ""
                       : fmt::format("{:.0f} TFLOP/s; unfused takes {:.1f} times as long", r.flops / r.time_us / 1e6,
                                     r.unfused_speedup));
  const std::string busy = utilisation_line(r.utilisation);
  t.text += fmt::format("\nbound by {}{}{}\n", r.bound, busy.empty() ? "" : ": ", busy);
  for (const UnfusedKernel& k : u.steps)
    if (k.cycles > 0)
      t.text += fmt::format("  unfused {}, {} with its launch, bound by {}: {}\n", k.name, time(k.time_us), k.bound,
                            utilisation_line(k.utilisation));
  if (r.device.kind == DeviceKind::cube_vector)
    t.text += cube_vector_line(r);
  else
    t.text += fmt::format("a CTA: {} of shared memory, {} threads of {} registers{}, {}; {} an SM (limit: {})\n",
                          bytes(r.smem_bytes_per_cta), r.plan.threads(), r.registers_per_thread,
                          r.registers.known ? "" : " (estimated)", spill_words(r), r.ctas_per_sm, r.occupancy.limit);
  return t.text + estimates_lines(r);
}

}  // namespace attest
