#include "code_fetch.h"

#include <algorithm>

#include "attest/simulator/compulsory.h"
#include "compiled_fa2.h"
#include "copy_time.h"
#include "kernel_code.h"
#include "queueing_network.h"

namespace attest {

constexpr double instruction_bytes = 16;

bool walk_apart(const Problem& p, const KernelPlan& plan) {
  const auto bounds = [&](std::int64_t window) { return window >= 0 && window < p.seqlen_k; };
  const bool ends = p.causal != Causal::none || bounds(p.window_right), begins = bounds(p.window_left);
  return (ends != begins && p.seqlen_q > plan.tile_m) || p.prefix > 0 || !p.documents.empty() ||
         lengths_of(p).size() > 1;
}

namespace {

/// Key tiles of a CTA that have code of their own.
struct TilesOfCode {
  double masked, whole;
};
TilesOfCode tiles_of_code(const KernelPlan& plan, const KeyRuns& runs) {
  const auto ctas = static_cast<double>(ctas_of(runs));
  std::int64_t masked = runs.all - runs.whole;
  if (plan.masked_steps > 0) {  // as many as it has key tiles, of which six are counted
    masked = 0;
    for (int step = 0; step < plan.masked_steps; ++step)
      masked += runs.longer[std::min(runs.longer.size() - 1, static_cast<std::size_t>(step))];
  }
  return {static_cast<double>(masked) / ctas, static_cast<double>(runs.whole) / ctas};
}

}  // namespace

double walked_code_bytes(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, const KeyRuns& runs,
                         const std::optional<PlaceCounts>& code) {
  if (code) return instruction_bytes * walked_once(*code, runs);
  const double whole = d.issue - d.masked * d.masks;
  const TilesOfCode tiles = tiles_of_code(plan, runs);
  const double around = device.kernel_code_scale * code_around_tiles(plan).instructions;
  return instruction_bytes * (around + tiles.masked * (whole + d.masks) + tiles.whole * whole);
}

// Of ten calls of general kinds, 32 and 132 CTAs on an H100, cold less warm, over the bytes that L2 was asked for, in
// the mean (`cold_code`): 0.29 to 0.43 cycles a byte, and 0.14 of one whose K and V fill a side of L2.
double cold_code_cycles(double asked) { return 0.35 * asked; }

double launched_code_bytes(double all) { return std::min(all, 65'536.0); }

double asked_code_bytes(double all, double fetched) {
  return all == 0 ? 0 : std::min(all, fetched) * (1 - launched_code_bytes(all) / all);
}

double fetched_code_bytes(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, const KeyRuns& runs,
                          bool pages) {
  // a function that copies goes round its loop for every granule
  double copies = 0;
  for (const Operand x : {Operand::k, Operand::v}) copies += copy_time(plan, device, x, pages).instructions;
  const TilesOfCode of_code = tiles_of_code(plan, runs);
  const double tiles = of_code.masked + of_code.whole;
  // fetching goes on behind a jump
  constexpr double behind_jump = 3 * 128;
  const double jumps = code_around_tiles(plan).jumps + tiles * (jumps_of_tile + code_of_scores(plan).jumps);
  const double walked = walked_code_bytes(d, plan, device, runs) - instruction_bytes * tiles * copies;
  return walked + jumps * behind_jump;
}

ColdCode cold_code(double code_bytes, const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device,
                   const KeyRuns& runs, bool pages, const std::optional<PlaceCounts>& code) {
  const bool calls = copies_by_call(plan);
  const double asked = asked_code_bytes(code_bytes, calls ? fetched_code_bytes(d, plan, device, runs, pages)
                                                          : walked_code_bytes(d, plan, device, runs, code));
  return {launched_code_bytes(code_bytes) + asked, calls ? cold_code_cycles(asked) : 0};
}

double code_wait_cycles(double code_bytes, double cycles, int ctas_per_sm, const DeviceSpec& device) {
  const double kept = static_cast<double>(device.code_cache_bytes) / ctas_per_sm;
  const double fetch = std::max(0.0, code_bytes - kept) / device.code_bytes_per_clock;
  const NetworkDemand demand{.own = {{fetch}}, .shared = {}, .wait = std::max(0.0, cycles - fetch)};
  return std::max(0.0, cycle_of_network(demand, {ctas_per_sm}) - cycles);
}

}  // namespace attest
