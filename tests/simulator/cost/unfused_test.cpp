#include "attest/simulator/unfused.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attest/simulator/compulsory.h"
#include "attest/simulator/report.h"
#include "measured_rows.h"
#include "own_unfused_code.h"

namespace attest {
namespace {

TEST(Unfused, ALongSequenceMovesItsMatrixFourTimes) {
  Problem p{4, 32, 32, 2048, 2048, 64, 64, Dtype::fp16, {}, Causal::bottom_right, -1, -1};
  const UnfusedCost cost = unfused_cost(p, load_device("a100"));
  const double matrix = 4.0 * 32 * 2048 * 2048 * 2, tensor = 4.0 * 32 * 2048 * 64 * 2;
  EXPECT_DOUBLE_EQ(cost.matrix_bytes, matrix);
  EXPECT_DOUBLE_EQ(cost.dram_read_bytes, 2 * matrix + 3 * tensor);
  EXPECT_DOUBLE_EQ(cost.dram_write_bytes + cost.dirty_bytes_left, 2 * matrix + tensor);
  EXPECT_LE(cost.dirty_bytes_left, 7.0 / 16 * 40 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(cost.flops, 4.0 * 4 * 32 * 2048 * 2048 * 64);
  EXPECT_DOUBLE_EQ(cost.steps[1].dram_read_bytes, matrix);
  EXPECT_DOUBLE_EQ(cost.steps[1].flops, 0);
  EXPECT_DOUBLE_EQ(cost.steps[2].result_bytes, tensor);
  EXPECT_DOUBLE_EQ(cost.steps[0].time_us + cost.steps[1].time_us + cost.steps[2].time_us, cost.time_us);
}

TEST(Unfused, AMatrixThatFitsIsFoundInL2) {
  Problem p{1, 8, 8, 512, 512, 64, 64, Dtype::fp16, {}, Causal::none, -1, -1};
  const UnfusedCost cost = unfused_cost(p, load_device("h100"));
  EXPECT_DOUBLE_EQ(cost.dram_read_bytes, 3.0 * 8 * 512 * 64 * 2);
  EXPECT_DOUBLE_EQ(cost.dram_write_bytes, 0);  // S, P and O are below 7 of 16 ways
  EXPECT_DOUBLE_EQ(cost.dirty_bytes_left, (2.0 * 8 * 512 * 512 + 8 * 512 * 64) * 2);
}

/// A row of simulator/measured/h200_unfused.csv: one kernel of a call.
struct Profiled {
  bool cold = false;
  Problem problem;
  std::size_t step = 0;
  double dram_read_bytes = 0, dram_write_bytes = 0, time_us = 0;
  double cycles = 0, l2_read_bytes = 0, tensor = 0;  // where caches are cold
};

std::vector<Profiled> read_profiled() {
  std::vector<Profiled> rows;
  for (const MeasuredRow& cells : measured_rows(ATTEST_MEASURED "/h200_unfused.csv")) {
    const auto of = [&](const char* name) { return std::stoll(cells.at(name)); };
    Profiled& row = rows.emplace_back();
    row.cold = cells.at("caches") == "cold";
    const std::int64_t heads = of("nheads"), s = of("seqlen"), d = of("headdim");
    row.problem = {of("batch"), heads, heads, s, s, d, d, Dtype::bf16, {}, Causal::none, -1, -1};
    row.step = std::string_view("SPO").find(cells.at("step")[0]);
    row.dram_read_bytes = static_cast<double>(of("dram__bytes_read.sum"));
    row.dram_write_bytes = static_cast<double>(of("dram__bytes_write.sum"));
    row.cycles = static_cast<double>(of("sm__cycles_elapsed.max"));
    row.time_us = static_cast<double>(of("gpu__time_duration.sum")) / 1000;
    if (!row.cold) continue;
    row.tensor = std::stod(cells.at("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed")) / 100;
    row.l2_read_bytes = 32.0 * static_cast<double>(of("lts__t_sectors_srcunit_tex_op_read.sum"));
  }
  return rows;
}

struct Mean {
  double sum = 0, most = 0;
  int rows = 0;
  void add(double ratio) { sum += std::abs(ratio - 1), most = std::max(most, std::abs(ratio - 1)), ++rows; }
  double mean() const { return sum / rows; }
};

// PyTorch's bmm, softmax and bmm on an H200 (bench/hardware/unfused.py). Softmax's time is printed and not bounded:
// PyTorch's takes 2 to 4 times as long as its bytes, which is no mechanism of this model.
TEST(Unfused, KernelsOfPyTorchOnAnH200) {
  const DeviceSpec device = load_device("h200");
  Mean reads, writes, products, l2;
  fmt::print("caches  case                step            | DRAM read   model | DRAM write  model |      us  model\n");
  for (const Profiled& row : read_profiled()) {
    const UnfusedCost cost = unfused_cost(row.problem, device);
    const UnfusedKernel& step = cost.steps[row.step];
    const double read = row.cold ? step.operand_bytes : step.dram_read_bytes;
    const double written = row.cold ? step.result_bytes - step.dirty_bytes_alone : step.dram_write_bytes;
    const Problem& p = row.problem;
    fmt::print(
        "{:<5} {:>3} {:>3} {:>5} {:>4}     {:<15} | {:>9.1f} {:>7.1f} | {:>10.1f} {:>6.1f} | {:>7.0f} {:>6.0f}\n",
        row.cold ? "cold" : "kept", p.batch, p.nheads, p.seqlen_q, p.headdim, step.name, row.dram_read_bytes / 1e6,
        read / 1e6, row.dram_write_bytes / 1e6, written / 1e6, row.time_us, step.time_us);
    // against what a kernel moves: bytes that a small one leaves in L2 are a few of few
    const double moved = step.operand_bytes + step.result_bytes;
    EXPECT_NEAR(row.dram_read_bytes, read, 0.05 * moved) << step.name;
    EXPECT_NEAR(row.dram_write_bytes, written, 16e6) << step.name;
    if (step.operand_bytes > 32e6) reads.add(read / row.dram_read_bytes);
    if (written > 32e6) writes.add(written / row.dram_write_bytes);
    const double run_us = step.time_us - 1e6 * device.launch_overhead_seconds;  // what a profiler times
    if (row.cold && row.step != 1 && moved > 100e6) {
      products.add(run_us / row.time_us);
      l2.add(step.l2_read_bytes / row.l2_read_bytes);
      // the pipe's work over the kernel's time
      const double tensor = step.utilisation[0].fraction * step.cycles;
      const double counted = row.tensor * row.cycles;
      EXPECT_EQ(step.utilisation[0].resource, "tensor");
      EXPECT_NEAR(tensor / counted, 1, 0.02);
    }
  }
  fmt::print(
      "DRAM reads of more than 32 MB ({}): {:.1f}% off on average, {:.1f}% at most; writes ({}) {:.1f}%, {:.1f}%; time "
      "of products ({}) {:.0f}%, {:.0f}%; their L2 reads {:.1f}%, {:.1f}%\n",
      reads.rows, 100 * reads.mean(), 100 * reads.most, writes.rows, 100 * writes.mean(), 100 * writes.most,
      products.rows, 100 * products.mean(), 100 * products.most, 100 * l2.mean(), 100 * l2.most);
  EXPECT_GE(reads.rows, 20);
  EXPECT_LT(reads.mean(), 0.02);
  EXPECT_LT(reads.most, 0.06);
  EXPECT_LT(writes.mean(), 0.05);
  EXPECT_LT(products.mean(), 0.12);
  EXPECT_LT(l2.mean(), 0.04);
  EXPECT_LT(l2.most, 0.15);
}

// The terms of the fused kernel: what binds and how busy each resource is, of each kernel and of all three.
TEST(Unfused, EachKernelSaysWhatBindsIt) {
  const DeviceSpec device = load_device("h200");
  Problem p{4, 16, 16, 4096, 4096, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
  const UnfusedCost cost = unfused_cost(p, device);
  double cycles = 0, tensor = 0;
  for (const UnfusedKernel& step : cost.steps) {
    SCOPED_TRACE(step.name);
    EXPECT_EQ(step.bound, "DRAM");
    EXPECT_DOUBLE_EQ(step.time_us, 1e6 * (step.cycles / device.sm_clock_hz + device.launch_overhead_seconds));
    ASSERT_EQ(step.utilisation.size(), 8U);
    for (const Utilisation& u : step.utilisation) {
      const bool multiplies = step.flops > 0, idle = multiplies ? u.resource == "exp" : u.resource == "tensor";
      EXPECT_EQ(u.fraction > 0, !idle && !(!multiplies && u.resource == "shared memory")) << u.resource;
      EXPECT_LE(u.fraction, 1) << u.resource;
    }
    cycles += step.cycles, tensor += step.utilisation[0].fraction * step.cycles;
  }
  EXPECT_DOUBLE_EQ(cost.cycles, cycles);
  EXPECT_EQ(cost.bound, "DRAM");
  EXPECT_DOUBLE_EQ(cost.utilisation[0].fraction * cycles, tensor);
  // what the pipe does by hand: all pairs, headdim products each, twice
  EXPECT_DOUBLE_EQ(tensor, 2 * 64 * 4096.0 * 4096 * 128 / device.wgmma_fma_per_clock_16bit / 132);
  p.softcap = 30;
  EXPECT_GT(unfused_cost(p, device).steps[0].utilisation[1].fraction, 0);  // tanh, as S is written
  p.dtype = Dtype::fp32;
  const UnfusedCost wide = unfused_cost(p, device);
  EXPECT_EQ(wide.steps[2].utilisation[0].fraction, 0);
  EXPECT_GT(wide.steps[2].utilisation[2].fraction, 1.0 / 3);  // sums and products, without tensor cores
}

// gpu/unfused's time is of these numbers, each a row of what bench/hardware/unfused_paths.py reads off its kernels.
TEST(Unfused, OursOfNoKeysTakeFiniteTime) {
  const DeviceSpec h200 = load_device("h200");
  Problem p;
  p.batch = p.nheads = p.nheads_k = 2, p.seqlen_q = 64, p.seqlen_k = 0, p.headdim = p.headdim_v = 64;
  const UnfusedCost cost = unfused_cost(p, h200, own_unfused(p));
  EXPECT_GE(cost.cycles, 0);
  EXPECT_LT(cost.cycles, 1e6);
}

// S and P of 2 MiB a head stay in L2, unless it is emptied before each launch: then both are read, and P and O alone of
// what the last two store may still be dirty.
TEST(Unfused, OursOfAnL2ThatIsEmptiedBetweenLaunchesReadSAndPFromDram) {
  const DeviceSpec h200 = load_device("h200");
  const Problem p{1, 8, 8, 1024, 1024, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
  const UnfusedCost kept = unfused_cost(p, h200, own_unfused(p)),
                    emptied = unfused_cost(p, h200, own_unfused(p), 0, true);
  EXPECT_EQ(emptied.steps[0].dram_read_bytes, kept.steps[0].dram_read_bytes);
  const double v = 8.0 * 1024 * 128 * 2;
  for (const auto& [step, inputs] : {std::pair{1u, 0.0}, {2u, v}}) {
    EXPECT_NEAR(emptied.steps[step].dram_read_bytes, kept.matrix_bytes + inputs, 0.02 * kept.matrix_bytes);
    EXPECT_LT(kept.steps[step].dram_read_bytes, 0.15 * kept.matrix_bytes + inputs);
  }
  EXPECT_LT(emptied.dirty_bytes_left, kept.dirty_bytes_left);
  EXPECT_LE(emptied.dram_write_bytes, kept.dram_write_bytes);
}

TEST(Unfused, OursExecuteTheirMachineCode) {
  std::map<std::string, WarpCode> rows;
  for (const MeasuredRow& row : measured_rows(ATTEST_MEASURED "/unfused_paths.csv")) {
    const auto of = [&](const char* name) { return std::stod(row.at(name)); };
    rows[row.at("kernel") + " " + row.at("part")] = {of("instructions"), of("alu"), of("fma"), of("cycles"),
                                                     of("waits")};
  }
  std::map<std::string, WarpCode> code = {{"softmax start", own_softmax_code.start},
                                          {"softmax maximum", own_softmax_code.maximum},
                                          {"softmax between", own_softmax_code.between},
                                          {"softmax exponentials", own_softmax_code.exponentials},
                                          {"softmax end", own_softmax_code.end}};
  for (const auto& [name, product] : {std::pair{"scores ", own_scores_code}, {"output ", own_output_code}}) {
    const std::string of(name);
    code[of + "start"] = product.start, code[of + "step"] = product.step;
    code[of + "copy A"] = product.copy_a, code[of + "copy B"] = product.copy_b;
    code[of + "between"] = product.between;
    code[of + "results"] = product.results, code[of + "turn"] = product.turn;
  }
  ASSERT_EQ(rows.size(), code.size());
  for (const auto& [part, of_kernel] : rows) {
    ASSERT_TRUE(code.contains(part)) << part;
    EXPECT_EQ(code.at(part), of_kernel) << part;
  }
}

// A few heads leave SMs without work, and one query a head does not fill them: no kernel is as fast as all of DRAM.
TEST(Unfused, SmallGridsDoNotReachTheDevicesRates) {
  const DeviceSpec device = load_device("h200");
  const auto seconds = [&](std::int64_t heads, std::int64_t keys) {
    const Problem p{1, heads, heads, 1, keys, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
    return 1e-6 * unfused_cost(p, device).steps[2].time_us - device.launch_overhead_seconds;
  };
  // eight CTAs of O = P V, each at an SM's share of what L2 delivers
  const double bytes = 65536.0 * 128 * 2;
  EXPECT_GT(seconds(8, 65536), bytes / (device.l2_bytes_per_second / 132));
  EXPECT_NEAR(seconds(40, 65536) / seconds(8, 65536), 1, 0.01);
  EXPECT_GT(seconds(1, 16) * device.sm_clock_hz,
            device.kernel_launch_cycles + device.dram_latency_cycles + device.l2_latency_cycles);
}

// What a kernel reads from DRAM some CTA of it asks L2 for, or it is the rest of a sector in which a row of S or P
// ends: of entries without queries or keys nothing but the output.
TEST(Unfused, ReadsFromDramWhatItsTilesAskFor) {
  const DeviceSpec device = load_device("h200");
  const auto of = [&](std::int64_t queries, std::int64_t keys) {
    return Problem{2, 8, 2, queries, keys, 64, 64, Dtype::bf16, {}, Causal::none, -1, -1};
  };
  std::vector<Problem> problems;
  for (const std::int64_t queries : {1, 7, 300})
    for (const std::int64_t keys : {0, 1, 5, 300}) problems.push_back(of(queries, keys));
  Problem lengths = of(300, 300);
  lengths.varlen_q = {300, 0}, lengths.varlen_k = {0, 300};
  problems.push_back(lengths);
  for (Problem p : problems)
    for (const Bias bias : {Bias::none, Bias::qk, Bias::bhqk})
      for (const bool own : {false, true}) {
        p.bias = bias;
        const UnfusedCost cost = unfused_cost(p, device, own ? own_unfused(p) : UnfusedKernels{});
        // a read brings 64 bytes
        const double rests_of_sectors = p.seqlen_k % 8 == 0 ? 0 : 64.0 * 2 * 8 * static_cast<double>(p.seqlen_q);
        for (const UnfusedKernel& step : cost.steps)
          EXPECT_LE(step.dram_read_bytes, step.l2_read_bytes + rests_of_sectors)
              << step.name << " of " << p.seqlen_q << " x " << p.seqlen_k << (own ? ", ours" : "");
        EXPECT_EQ(cost.dram_read_bytes == 0, all_pairs(p) == 0);
        EXPECT_EQ(cost.steps[2].result_bytes,
                  8.0 * 64 * 2 * static_cast<double>(p.varlen_q.empty() ? 2 * p.seqlen_q : 300));
      }
}

// A decoding step reads K and V once either way: three kernels are slower by their launches and what they write.
TEST(Unfused, ADecodingStepIsNoFasterThanFused) {
  const DeviceSpec device = load_device("h200");
  Case c;
  c.problem = {64, 32, 32, 1, 2048, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
  const SimulationReport r = simulate(c, plan_named("attest", c, device), device, "attest");
  EXPECT_GT(r.unfused_speedup, 1);
  EXPECT_LT(r.unfused_speedup, 1.2);
}

// Of so many short rows a part is walked, which stands for all: 2^20 would be a minute.
TEST(Unfused, ShortRowsWriteAsMuchEachHoweverManyTheyAre) {
  const DeviceSpec device = load_device("h200");
  const auto written_of_each = [&](std::int64_t batch) {
    const Problem p{batch, 1, 1, 1, 1, 64, 64, Dtype::bf16, {}, Causal::none, -1, -1};
    return unfused_cost(p, device, own_unfused(p)).dram_write_bytes / static_cast<double>(batch);
  };
  const double many = written_of_each(1 << 16);
  EXPECT_GT(many, 1000);  // of the 64 KiB of a product's frame, most of which is overwritten in L2
  EXPECT_NEAR(written_of_each(1 << 20), many, 0.02 * many);
}

// What stands for all is weighed by all that is stored: one long sequence behind short ones has most of S and P.
TEST(Unfused, ALongSequenceBehindShortOnesAddsWhatItWrites) {
  const DeviceSpec device = load_device("h200");
  const auto written = [&](std::size_t others) {
    Problem p{static_cast<std::int64_t>(others) + 1, 1, 1, 2048, 2048, 64, 64, Dtype::bf16, {}, Causal::none, -1, -1};
    p.varlen_q.assign(others, 1);
    p.varlen_q.push_back(2048);
    p.varlen_k = p.varlen_q;
    return unfused_cost(p, device, own_unfused(p)).dram_write_bytes;
  };
  const double few = written(7000), many = written(9000);  // all are walked, and a part
  EXPECT_GT(many, few);
  EXPECT_LT(many, 9.0 / 7 * 1.2 * few);
}

TEST(Unfused, NeverFasterThanItsBytesOrItsLaunches) {
  const DeviceSpec device = load_device("h200");
  for (const std::int64_t s : {1, 64, 1024, 8192}) {
    Problem p{1, 16, 16, s, s, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
    const UnfusedCost cost = unfused_cost(p, device);
    EXPECT_GE(cost.time_us, 3e6 * device.launch_overhead_seconds);
    if (s == 8192) {
      EXPECT_GE(cost.time_us, 1e6 * (cost.dram_read_bytes + cost.dram_write_bytes) / device.dram_bytes_per_second);
    }
  }
}

}  // namespace
}  // namespace attest
