#include "third_party_goals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string_view>

#include "attest/plan/catalog.h"
#include "attest/simulator/comparison.h"
#include "compiled_registers.h"

namespace attest {
namespace {

/// O and LSE once, and every CTA's local memory once: what a kernel writes that must reach DRAM in the end.
double output_and_spill(const SimulationReport& r) {
  const Problem& p = r.c.problem;
  const double rows = static_cast<double>(p.batch * p.nheads * p.seqlen_q);
  const double spill = 4.0 * r.plan.threads() * r.plan.spill_words_per_key_tile * static_cast<double>(r.walk.ctas);
  return rows * (static_cast<double>(p.headdim_v) * 2 + 4) + spill;
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double counted(const CountedCall& row, const char* counter) {
  return row.value.contains(counter) ? row.at(counter) : nan;
}

/// Of the errors of a file's rows of one kernel, in per cent: what is wanted.
struct Goal {
  const char* figure;
  double Ratios::*ratio;
  double mean, most;
};
constexpr double any = 1e9;
constexpr Goal goals[] = {
    {"wavefronts", &Ratios::wavefronts, 0.2, 1},  {"ideal wavefronts", &Ratios::ideal_wavefronts, 0.2, 1},
    {"SM read", &Ratios::sm_read, 0.2, 0.2},      {"SM write", &Ratios::sm_write, 0.2, 0.2},
    {"L2 read", &Ratios::l2_read, 5, any},        {"crossing", &Ratios::crossing, 5, any},
    {"DRAM read", &Ratios::dram_read, 1.5, 6},    {"DRAM write", &Ratios::written, any, 10},
    {"cycles", &Ratios::cycles, 8, any},          {"registers", &Ratios::registers, any, 0.4},  // one of 255
    {"XU instructions", &Ratios::xu, 0.01, 0.02}, {"spill stores", &Ratios::stores, 0.01, 0.03},
    {"spill loads", &Ratios::loads, 0.01, 0.03},
};

/// Rows that do not keep a goal, and what bounds them instead: what was reached, rounded up.
struct Beyond {
  const char *file, *kernel, *figure;
  double mean, most;
  const char* why;
};
constexpr const char *blind = "h200_blind.csv", *waves = "h200_cudnn_waves.csv", *drawn = "h200_drawn.csv",
                     *again = "h200_drawn_again.csv", *h100_drawn = "h100_drawn.csv", *fa2_blind = "h100_fa2_blind.csv",
                     *fa2_heads = "h100_fa2_heads.csv", *after = "h200_fa2_after.csv",
                     *strides = "h200_fa2_strides.csv",
                     *of_72 = "headdims 72 to 104: sectors that rows and stores of a row share; LSE",
                     *of_192 = "headdims 192 and 256, one slot each for K and V: not known why",
                     *of_lse = "lengths that eight does not divide: sectors of LSE that two stores share",
                     *of_once = "10,526 keys at headdim 80: of what CTAs spill once half is written, not known why",
                     *of_few = "calls of 2 to 24 heads: which of them CTAs read together";

constexpr Beyond beyond[] = {
    {blind, "cudnn", "DRAM read", 1.05, 9.7,
     "65,536 keys at headdim 64, by 5 to 12% as sets are followed: not known why"},
    {drawn, "fa2", "DRAM read", 2.3, 8.7,
     "headdims 256, 80 and 96 of 28,672 keys, causal; where tensors lay is not known"},
    {drawn, "cudnn", "L2 read", 5.2, 13.7, of_192},
    {"h200_fa3_causal.csv", "fa3", "DRAM read", 1.3, 9.0, "where tensors lay is not known of all; chance at 64 on 8"},
    {again, "fa2", "SM read", 0.03, 0.22, "832 keys, causal: what its spill loads"},
    {again, "fa2", "SM write", 0.1, 0.72, of_lse},
    {again, "fa2", "DRAM write", 6.8, 25.4, of_once},
    {again, "cudnn", "L2 read", 8.6, 26.2, of_few},
    {again, "cudnn", "crossing", 6.1, 30.4, of_few},
    {h100_drawn, "fa2", "SM read", 0.03, 0.22, "832 keys, causal: what its spill loads"},
    {h100_drawn, "fa2", "SM write", 0.1, 0.72, of_lse},
    {h100_drawn, "fa2", "DRAM write", 5.9, 19, of_once},
    {h100_drawn, "cudnn", "L2 read", 7.4, 34.4, of_few},
    {strides, "fa2", "DRAM read", 2.4, 13.6,
     "6 to 16 heads at 128, causal, not known why; where tensors lay is not known"},
    {"h200_fa2_placed.csv", "fa2", "DRAM read", 1.6, 10.6, "6 and 7 heads at 128 and 8 at 256, causal, not known why"},
    {after, "fa2", "SM write", 1.02, 18.9, of_72},
    {after, "fa2", "DRAM read", 1.6, 5.4,
     "24,576 keys at 256, 12,288 at 104, causal; several batches, rows before heads: not known why"},
    {fa2_blind, "fa2", "wavefronts", 0.2, 2.3, "367 keys: copies of rows past the last that P0 stops"},
    {fa2_blind, "fa2", "ideal wavefronts", 0.1, 1.4, "528 keys: likewise"},
    {fa2_blind, "fa2", "SM write", 1.1, 15.9, of_72},
    {fa2_heads, "fa2", "wavefronts", 0.5, 3.3, "headdims 8 and 16, not known why"},
    {fa2_heads, "fa2", "ideal wavefronts", 0.65, 2.4, "likewise, and 24"},
    {fa2_heads, "fa2", "SM read", 0.04, 0.24, "1536 keys, causal: CTAs that store some of their words alone"},
    {fa2_heads, "fa2", "SM write", 1.0, 12.4, of_72},
    {fa2_heads, "fa2", "L2 read", 6.0, 42.7, "headdims below 64: more of their requests merge than the model has"},
    {fa2_heads, "fa2", "DRAM read", 1.2, 6.3,
     "three batches of 24 heads at 88, causal, rows before heads: not known why"},
    {waves, "cudnn", "L2 read", 10.3, 32, "which CTAs arrive first is chance, and so which ask for a head together"},
    {waves, "cudnn", "crossing", 8.8, 24.4,
     "which CTAs arrive first is chance, and so which heads both sides read; half a MB a call more, not known why"},
};

const Beyond* beyond_of(const std::string& file, const std::string& kernel, std::string_view figure) {
  const auto found = std::find_if(std::begin(beyond), std::end(beyond), [&](const Beyond& b) {
    return file == b.file && kernel == b.kernel && figure == b.figure;
  });
  return found == std::end(beyond) ? nullptr : found;
}

struct Error {
  double mean, most;  // in per cent
};

Error error_of(const std::vector<Ratios>& rows, double Ratios::*ratio) {
  double sum = 0, most = 0;
  int n = 0;
  for (const Ratios& row : rows) {
    if (!std::isfinite(row.*ratio)) continue;  // nothing was counted: a short call's output may stay in L2
    const double error = 100 * std::abs(row.*ratio - 1);
    sum += error, most = std::max(most, error), ++n;
  }
  return {sum / n, most};
}

void expect_goals(const std::string& file, const std::string& kernel, const std::vector<Ratios>& rows) {
  for (const Goal& goal : goals) {
    SCOPED_TRACE(kernel + "'s " + goal.figure);
    const Error error = error_of(rows, goal.ratio);
    const Beyond* b = beyond_of(file, kernel, goal.figure);
    if (std::isnan(error.mean)) {  // not counted
      EXPECT_EQ(b, nullptr);
      continue;
    }
    std::printf("%6s %-16s %9.3f %9.3f  %s\n", kernel.c_str(), goal.figure, error.mean, error.most,
                b != nullptr ? b->why : "");
    EXPECT_LE(error.mean, b != nullptr ? b->mean : goal.mean);
    EXPECT_LE(error.most, b != nullptr ? b->most : goal.most);
    EXPECT_FALSE(b != nullptr && error.mean <= goal.mean && error.most <= goal.most) << "strike it off the list";
  }
}

void expect_launch_as_measured(const SimulationReport& r, const CountedCall& row) {
  EXPECT_EQ(r.smem_bytes_per_cta, row.at("launch__shared_mem_per_block"));
  EXPECT_EQ(r.plan.threads(), row.at("launch__block_size"));
  const auto resident = static_cast<std::int64_t>(r.device.num_sms * r.ctas_per_sm);
  EXPECT_EQ(r.plan.persistence == Persistence::none ? r.walk.ctas : std::min(resident, r.walk.ctas),
            row.at("launch__grid_size"));
}

/// Bounds that hold row by row, in files with all counters; `ragged` of wavefronts, where the last key tile is in part.
void expect_row(const SimulationReport& r, const CountedCall& row, const Ratios& x, double ragged) {
  double wavefronts = row.at("seqlen") == 1000 ? 0.01 : std::fmod(row.at("seqlen"), 64) != 0 ? ragged : 0.002;
  // rows that are part of the columns they are padded to are beyond a goal, which is named above
  const bool in_part = row.kernel == "fa2" && std::fmod(row.at("headdim"), 32) != 0;
  EXPECT_NEAR(x.wavefronts, 1, std::max(wavefronts, !in_part ? 0 : row.at("headdim") < 24 ? 0.033 : 0.0025));
  EXPECT_NEAR(x.ideal_wavefronts, 1, std::max(wavefronts, !in_part ? 0 : row.at("headdim") < 32 ? 0.024 : 0.0035));
  // of rows that end with sectors: spill is known of FA2's kernels for full attention over whole tiles, and FA3 causal
  // and cuDNN have none
  const bool whole = std::fmod(row.at("seqlen"), 128) == 0 && std::fmod(row.at("headdim"), 16) == 0,
             causal = row.at("causal") != 0;
  if (row.kernel == "fa2" ? whole && !causal : row.kernel == "cudnn" || causal) {
    EXPECT_NEAR(x.sm_write, 1, 0.002);
  }
  expect_launch_as_measured(r, row);
}

}  // namespace

Ratios ratios_of(const SimulationReport& r, const CountedCall& row) {
  const auto over = [&](double predicted, const char* counter, double unit = 1) {
    return predicted / (unit * counted(row, counter));
  };
  const auto spilled = [&](std::optional<double> predicted, const char* counter) {
    if (predicted == 0 && counted(row, counter) == 0) return 1.0;
    return std::min(over(predicted.value_or(nan), counter), 1e9);  // where none was counted
  };
  const double off = r.dram_write_bytes - counted(row, "dram__bytes_write.sum");
  const UnseenWavefronts unseen = unseen_wavefronts(r.plan, row.kernel, r.c, r.device);
  return {over(r.smem_wavefronts - unseen.all, "memory_l1_wavefronts_shared"),
          over(r.smem_wavefronts_ideal - unseen.ideal, "memory_l1_wavefronts_shared_ideal"),
          over(r.sm_read_bytes, "l1tex__m_xbar2l1tex_read_bytes.sum"),
          over(r.sm_write_bytes, "l1tex__m_l1tex2xbar_write_bytes.sum"),
          over(r.l2_read_bytes, "lts__t_sectors_srcunit_tex_op_read.sum", 32),
          over(r.l2_crossing_bytes, "lts__t_sectors_srcunit_ltcfabric.sum", 32),
          over(r.dram_read_bytes, "dram__bytes_read.sum"),
          over(r.dram_write_bytes, "dram__bytes_write.sum"),
          over(r.cycles, "sm__cycles_elapsed.max"),
          over(r.registers_per_thread, "launch__registers_per_thread"),
          over(r.xu_instructions, "sm__inst_executed_pipe_xu.sum"),
          spilled(r.spill_store_instructions, "smsp__inst_executed_op_local_st.sum"),
          spilled(r.spill_load_instructions, "smsp__inst_executed_op_local_ld.sum"),
          output_bytes(row) > 32e6 ? 1 + off / output_and_spill(r) : nan};
}

std::map<std::string, std::vector<Ratios>> score(const std::string& file, const char* name, double ragged,
                                                 std::int64_t memory_begin) {
  const DeviceSpec device = load_device(name);
  TileWalkOptions options;
  options.through_ncu = true;  // which counted all of them
  options.memory_begin = memory_begin;
  std::map<std::string, std::vector<Ratios>> kernels;
  std::printf("predicted over measured, %s\n", file.c_str());
  std::printf(
      "kernel batch heads on queries  keys headdim causal | wavefronts  SM read SM write  L2 read crossing DRAM read "
      "DRAM write "
      "  cycles | DRAM read, written MB, measured\n");
  for (const CountedCall& row : counted_calls(ATTEST_MEASURED "/" + file)) {
    const auto is_plan = [&](const NamedPlan& p) { return row.kernel == p.name; };
    if (std::none_of(std::begin(named_plans), std::end(named_plans), is_plan)) continue;  // compiled otherwise
    const Case c = case_of(row);
    SCOPED_TRACE(row.kernel + ", " + command_line(c));
    const SimulationReport r = simulate(c, plan_named(row.kernel, c, device), device, row.kernel, options);
    const Ratios x = ratios_of(r, row);
    std::printf(
        "%6s %5.0f %5.0f %2.0f %6.0f %6.0f %7.0f %6.0f | %10.5f %8.5f %8.4f %8.3f %8.3f %9.4f %10.3f %8.3f | %9.1f "
        "%12.1f\n",
        row.kernel.c_str(), row.at("batch"), row.at("nheads"), row.at("nheads_k"), row.at("seqlen_q"), row.at("seqlen"),
        row.at("headdim"), row.at("causal"), x.wavefronts, x.sm_read, x.sm_write, x.l2_read, x.crossing, x.dram_read,
        x.dram_write, x.cycles, row.at("dram__bytes_read.sum") / 1e6, counted(row, "dram__bytes_write.sum") / 1e6);
    if (row.value.contains("launch__grid_size")) expect_row(r, row, x, ragged);
    kernels[row.kernel].push_back(x);
  }
  std::printf("error in %%           mean       most  beyond the goal\n");
  for (const auto& [kernel, rows] : kernels) expect_goals(file, kernel, rows);
  for (const Beyond& b : beyond) EXPECT_TRUE(file != b.file || kernels.contains(b.kernel)) << b.kernel << b.figure;
  return kernels;
}

}  // namespace attest
