// What each mechanism of the simulator is worth: the errors of all counted calls without it.
//
//     simulator_ablation simulator/measured/h200_third_party.csv simulator/measured/h200_more.csv
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "attest/simulator/report.h"

namespace {

using namespace attest;

using Row = std::map<std::string, std::string>;

std::vector<Row> rows_of(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  const auto cells_of = [](const std::string& line) {
    std::vector<std::string> cells;
    std::stringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
    return cells;
  };
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> names = cells_of(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = cells_of(line);
    Row row;
    for (std::size_t i = 0; i < cells.size(); ++i) row[names.at(i)] = cells[i];
    rows.push_back(row);
  }
  return rows;
}

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
    {"no spill", [](Call& c) { c.plan.spill_words_per_key_tile = c.plan.spill_words_per_cta = 0; }},
    {"no dirty lines at the start", [](Call& c) { c.options.dirty_bytes_at_start = 0; }},
    {"no noise", [](Call& c) { c.options.noise = 0; }},
    {"requests never merge", [](Call& c) { c.device.gpcs = c.device.num_sms; }},
    {"no launch", [](Call& c) { c.device.kernel_launch_cycles = c.device.cta_launch_cycles = 0; }},
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

void score(const Variant& variant, const std::vector<Row>& rows, const DeviceSpec& h200) {
  Errors reads, reads_fa2, reads_fa3, writes, l2, cycles;
  for (const Row& row : rows) {
    const auto number = [&](const char* name) { return std::stod(row.at(name)); };
    Case c;
    Problem& p = c.problem;
    p.batch = static_cast<std::int64_t>(number("batch"));
    p.nheads = p.nheads_k = static_cast<std::int64_t>(number("nheads"));
    p.seqlen_q = p.seqlen_k = static_cast<std::int64_t>(number("seqlen"));
    p.headdim = p.headdim_v = static_cast<std::int64_t>(number("headdim"));
    p.causal = number("causal") != 0 ? Causal::bottom_right : Causal::none;
    const std::string& kernel = row.at("kernel");
    Call call{h200, plan_named(kernel, c, h200), {}};
    variant.change(call);
    const SimulationReport r = simulate(c, call.plan, call.device, kernel, call.options);
    const double read = number("dram__bytes_read.sum");
    reads.add(r.dram_read_bytes, read);
    (kernel == "fa2" ? reads_fa2 : reads_fa3).add(r.dram_read_bytes, read);
    if (static_cast<double>(p.batch * p.nheads * p.seqlen_q * p.headdim) * 2 > 32e6)
      writes.add(r.dram_write_bytes, number("dram__bytes_write.sum"));
    l2.add(r.l2_read_bytes, 32 * number("lts__t_sectors_srcunit_tex_op_read.sum"));
    cycles.add(r.cycles, number("sm__cycles_elapsed.max"));
  }
  std::printf("| %s | %.1f%% | %.1f%% | %.1f%% | %.0f%% | %.1f%% | %.1f%% | %.1f%% |\n", variant.name, reads.mean(),
              reads_fa2.mean(), reads_fa3.mean(), 100 * reads.worst, writes.mean(), l2.mean(), cycles.mean());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<Row> rows;
    for (int i = 1; i < argc; ++i)
      for (Row& row : rows_of(argv[i])) rows.push_back(row);
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
