// The models against counters of a kernel nobody here wrote: FlashAttention 2 on an H200, cold caches, one row a call.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "attest/simulator/report.h"

namespace attest {
namespace {

struct Row {
  std::string kernel;
  std::map<std::string, double> value;
  double at(const std::string& name) const { return value.at(name); }
};

std::vector<Row> rows_of(const std::string& kernel) {
  std::ifstream in(ATTEST_MEASURED "/h200_third_party.csv");
  std::string line, cell;
  std::vector<std::string> names;
  std::getline(in, line);
  for (std::stringstream header(line); std::getline(header, cell, ',');) names.push_back(cell);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    std::stringstream cells(line);
    Row row;
    std::getline(cells, row.kernel, ',');
    for (std::size_t i = 1; std::getline(cells, cell, ','); ++i) row.value[names.at(i)] = std::stod(cell);
    if (row.kernel == kernel) rows.push_back(row);
  }
  return rows;
}

SimulationReport predict(const Row& row) {
  Case c;
  Problem& p = c.problem;
  p.batch = static_cast<std::int64_t>(row.at("batch"));
  p.nheads = p.nheads_k = static_cast<std::int64_t>(row.at("nheads"));
  p.seqlen_q = p.seqlen_k = static_cast<std::int64_t>(row.at("seqlen"));
  p.headdim = p.headdim_v = static_cast<std::int64_t>(row.at("headdim"));
  p.causal = row.at("causal") != 0 ? Causal::bottom_right : Causal::none;
  const DeviceSpec h200 = load_device("h200");
  return simulate(c, plan_named("fa2", c, h200), h200, "fa2");
}

struct Mean {
  double sum = 0, worst = 0;
  int n = 0;
  void add(double ratio) {
    const double error = std::abs(ratio - 1);
    sum += error, worst = std::max(worst, error), ++n;
  }
  double mean() const { return sum / n; }
};

TEST(ThirdParty, FlashAttention2OnH200) {
  const auto rows = rows_of("fa2");
  ASSERT_EQ(rows.size(), 9u);
  Mean dram, l2, cycles;
  std::printf("predicted over measured, FlashAttention 2 on an H200\n");
  std::printf(
      "batch heads seqlen headdim causal | wavefronts  SM read SM write  L2 read DRAM read DRAM write   cycles | DRAM "
      "read MB measured\n");
  for (const Row& row : rows) {
    const SimulationReport r = predict(row);
    const bool even = std::fmod(row.at("seqlen"), 128) == 0;  // FA2 compiles another kernel for ragged lengths
    const double wavefronts = r.smem_wavefronts / row.at("memory_l1_wavefronts_shared");
    const double sm_read = r.sm_read_bytes / row.at("l1tex__m_xbar2l1tex_read_bytes.sum");
    const double sm_write = r.sm_write_bytes / row.at("l1tex__m_l1tex2xbar_write_bytes.sum");
    const double l2_read = r.l2_read_bytes / (32 * row.at("lts__t_sectors_srcunit_tex_op_read.sum"));
    const double dram_read = r.dram_read_bytes / row.at("dram__bytes_read.sum");
    const double dram_write = r.dram_write_bytes / row.at("dram__bytes_write.sum");
    const double time = r.cycles / row.at("sm__cycles_elapsed.max");
    std::printf("%5.0f %5.0f %6.0f %7.0f %6.0f | %10.5f %8.5f %8.4f %8.3f %9.4f %10.3f %8.3f | %12.1f %8.1f\n",
                row.at("batch"), row.at("nheads"), row.at("seqlen"), row.at("headdim"), row.at("causal"), wavefronts,
                sm_read, sm_write, l2_read, dram_read, dram_write, time, r.dram_read_bytes / 1e6,
                row.at("dram__bytes_read.sum") / 1e6);
    dram.add(dram_read), l2.add(l2_read), cycles.add(time);

    EXPECT_NEAR(wavefronts, 1, even ? 0.002 : 0.01);
    EXPECT_NEAR(r.smem_wavefronts_ideal / row.at("memory_l1_wavefronts_shared_ideal"), 1, 0.002);
    EXPECT_NEAR(sm_read, 1, 0.002);
    EXPECT_NEAR(dram_read, 1, 0.04);
    EXPECT_EQ(r.ctas_per_sm, 2);
    EXPECT_EQ(r.registers_per_thread, row.at("launch__registers_per_thread"));
    EXPECT_EQ(r.smem_bytes_per_cta, row.at("launch__shared_mem_per_block"));
    EXPECT_EQ(r.walk.ctas, row.at("launch__grid_size"));
    // spill is known for the even kernels; the causal ones store up to 4% more, in their masked tiles
    if (even) {
      EXPECT_NEAR(sm_write, 1, row.at("causal") != 0 ? 0.05 : 0.0005);
    }
    EXPECT_NEAR(time, 1, 0.12);
  }
  std::printf("mean error: DRAM read %.2f%% (worst %.2f%%), L2 read %.2f%%, cycles %.2f%%\n", 100 * dram.mean(),
              100 * dram.worst, 100 * l2.mean(), 100 * cycles.mean());
  EXPECT_LT(dram.mean(), 0.02);
  EXPECT_LT(l2.mean(), 0.08);
  EXPECT_LT(cycles.mean(), 0.08);
}

// Output that is still dirty in L2 when a kernel ends is not in dram__bytes_write, so that short calls say little.
TEST(ThirdParty, WritesOfCallsWhoseOutputExceeds32MB) {
  for (const Row& row : rows_of("fa2")) {
    const SimulationReport r = predict(row);
    if (r.compulsory_bytes / 4 < 32e6) continue;  // O is one of four tensors of one size
    const double measured = row.at("dram__bytes_write.sum");
    EXPECT_NEAR(r.dram_write_bytes / measured, 1, 0.18) << row.at("seqlen");
  }
}

}  // namespace
}  // namespace attest
