#include "attest/simulator/unfused.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

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
};

std::vector<Profiled> read_profiled() {
  std::ifstream in(ATTEST_MEASURED "/h200_unfused.csv");
  std::vector<Profiled> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#' || line.starts_with("caches")) continue;
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    const auto number = [&](std::size_t i) { return std::stoll(cells.at(i)); };
    Profiled& row = rows.emplace_back();
    row.cold = cells[0] == "cold";
    const std::int64_t s = number(3), d = number(4);
    row.problem = {number(1), number(2), number(2), s, s, d, d, Dtype::bf16, {}, Causal::none, -1, -1};
    row.step = cells[5][0] == 'S' ? 0 : cells[5][0] == 'P' ? 1 : 2;
    row.dram_read_bytes = static_cast<double>(number(6));
    row.dram_write_bytes = static_cast<double>(number(7));
    row.time_us = static_cast<double>(number(9)) / 1000;
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
  Mean reads, writes, products;
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
    if (row.cold && row.step != 1 && moved > 100e6) products.add(step.time_us / row.time_us);
  }
  fmt::print(
      "DRAM reads of more than 32 MB ({}): {:.1f}% off on average, {:.1f}% at most; writes ({}) {:.1f}%, {:.1f}%; time "
      "of products ({}) {:.0f}%, {:.0f}%\n",
      reads.rows, 100 * reads.mean(), 100 * reads.most, writes.rows, 100 * writes.mean(), 100 * writes.most,
      products.rows, 100 * products.mean(), 100 * products.most);
  EXPECT_GE(reads.rows, 20);
  EXPECT_LT(reads.mean(), 0.02);
  EXPECT_LT(reads.most, 0.06);
  EXPECT_LT(writes.mean(), 0.05);
  EXPECT_LT(products.mean(), 0.12);
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
