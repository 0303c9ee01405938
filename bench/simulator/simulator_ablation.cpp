// What each mechanism of the simulator is worth: the errors of all counted calls without it.
//
//     simulator_ablation simulator/measured/h200_third_party.csv simulator/measured/h200_more.csv
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "attest/simulator/report.h"
#include "measured/counted_calls.h"

namespace {

using namespace attest;

/// What a variant may change before a call is predicted.
struct Call {
  DeviceSpec device;
  KernelPlan plan;
  TileWalkOptions options;
};

struct Variant {
  const char* name;
  std::function<void(Call&)> change;
};

/// As they lie and run now.
void make_each_sm_a_gpc(DeviceSpec& d) {
  std::vector<double> sides, clocks;
  for (std::int64_t sm = 0; sm < d.num_sms; ++sm) {
    const auto gpc = static_cast<std::size_t>(sm * d.gpcs() / d.num_sms);
    sides.push_back(d.gpc_sides[gpc]), clocks.push_back(d.gpc_clocks[gpc]);
  }
  d.gpc_sides = sides, d.gpc_clocks = clocks;
}

const Variant variants[] = {
    {"as it is", [](Call&) {}},
    {"one cache of 60 MiB", [](Call& c) { c.device.l2_partitions = 1; }},
    {"one cache of 30 MiB", [](Call& c) { c.device.l2_partitions = 1, c.device.l2_bytes /= 2; }},
    {"28 MiB a partition", [](Call& c) { c.device.l2_bytes = 56 << 20, c.device.l2_slices_per_partition = 56; }},
    {"8 ways", [](Call& c) { c.device.l2_ways = 8, c.device.l2_dirty_ways = 4; }},
    {"32 ways", [](Call& c) { c.device.l2_ways = 32, c.device.l2_dirty_ways = 14; }},
    {"all ways may stay dirty", [](Call& c) { c.device.l2_dirty_ways = 16; }},
    {"no evict_first on Q", [](Call& c) { c.plan.evict_first_q = false; }},
    {"no sections", [](Call& c) { c.plan.l2_section_bytes = 0; }},
    {"no CTA of an SM leads", [](Call& c) { c.plan.older_cta_lead = 0; }},
    {"no spill",
     [](Call& c) {
       c.plan.spill_words_per_key_tile = c.plan.spill_words_per_cta = c.plan.spill_words_entering = 0;
       c.plan.spill_words_at_start = c.plan.producer_spill_sectors = 0;
     }},
    {"no dirty lines at the start", [](Call& c) { c.options.dirty_bytes_at_start = 0; }},
    {"no noise", [](Call& c) { c.options.noise = 0; }},
    {"half the noise", [](Call& c) { c.options.noise /= 2; }},
    {"twice the noise", [](Call& c) { c.options.noise *= 2; }},
    {"four times the noise", [](Call& c) { c.options.noise *= 4; }},
    {"one clock for all GPCs", [](Call& c) { std::ranges::fill(c.device.gpc_clocks, 1); }},
    {"sides of GPCs alternate",
     [](Call& c) {
       for (std::size_t g = 0; g < c.device.gpc_sides.size(); ++g) c.device.gpc_sides[g] = static_cast<double>(g % 2);
     }},
    {"requests never merge", [](Call& c) { make_each_sm_a_gpc(c.device); }},
    {"no waits beside products",
     [](Call& c) {
       DeviceSpec& d = c.device;
       d.alu_beside_wgmma = d.fma_beside_wgmma = d.scaled_exp_beside_wgmma = 1;
     }},
    {"no prologue of producers", [](Call& c) { c.device.bulk_prologue_cycles = 0; }},
    {"no launch",
     [](Call& c) {
       DeviceSpec& d = c.device;
       d.kernel_launch_cycles = d.cta_launch_cycles = d.cta_start_cycles = d.argument_line_cycles = 0;
     }},
};

struct Errors {
  double sum = 0, worst = 0;
  int n = 0;
  void add(double predicted, double measured) {
    const double error = std::abs(predicted / measured - 1);
    sum += error, ++n;
    worst = std::max(worst, error);
  }
  double mean() const { return n == 0 ? 0 : 100 * sum / n; }
};

void score(const Variant& variant, const std::vector<CountedCall>& rows, const DeviceSpec& h200) {
  Errors reads, reads_fa2, reads_fa3, writes, l2, cycles;
  for (const CountedCall& row : rows) {
    const Case c = case_of(row);
    const std::string& kernel = row.kernel;
    Call call{h200, plan_named(kernel, c, h200), {}};
    variant.change(call);
    const SimulationReport r = simulate(c, call.plan, call.device, kernel, call.options);
    const double read = row.at("dram__bytes_read.sum");
    reads.add(r.dram_read_bytes, read);
    (kernel == "fa2" ? reads_fa2 : reads_fa3).add(r.dram_read_bytes, read);
    if (output_bytes(row) > 32e6) writes.add(r.dram_write_bytes, row.at("dram__bytes_write.sum"));
    l2.add(r.l2_read_bytes, 32 * row.at("lts__t_sectors_srcunit_tex_op_read.sum"));
    cycles.add(r.cycles, row.at("sm__cycles_elapsed.max"));
  }
  std::printf("| %s | %.1f%% | %.1f%% | %.1f%% | %.0f%% | %.1f%% | %.1f%% | %.1f%% |\n", variant.name, reads.mean(),
              reads_fa2.mean(), reads_fa3.mean(), 100 * reads.worst, writes.mean(), l2.mean(), cycles.mean());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<CountedCall> rows;
    for (int i = 1; i < argc; ++i)
      for (CountedCall& row : counted_calls(argv[i])) rows.push_back(row);
    const DeviceSpec h200 = load_device("h200");
    std::printf(
        "| | DRAM read | FA2 | FA3 | worst | DRAM write | L2 read | cycles |\n|---|---|---|---|---|---|---|---|\n");
    for (const Variant& variant : variants) score(variant, rows, h200);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simulator_ablation: %s\n", error.what());
    return 1;
  }
  return 0;
}
