// What compilers say of kernels, as simulator/measured/registers_*.csv have it, and how far estimates are from it.
#pragma once
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "attest/simulator/registers.h"

namespace attest {

/// An instantiation and what ptxas says of it.
struct Compiled {
  KernelPlan plan;
  LaunchBounds bounds;
  int registers = 0, stack_bytes = 0, store_bytes = 0;
  bool held_back = false;  // not looked at when the mechanisms were chosen
};

/// The lines of a CSV of `columns` whole numbers, and these; not its comments and header.
template <std::size_t columns>
std::vector<std::pair<std::string, std::array<int, columns>>> read_csv(const std::string& name) {
  std::ifstream in(ATTEST_MEASURED "/" + name);
  std::vector<std::pair<std::string, std::array<int, columns>>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] < '0' || line[0] > '9') continue;
    std::stringstream cells(line);
    std::string cell;
    for (int& value : rows.emplace_back(line, std::array<int, columns>{}).second)
      std::getline(cells, cell, ','), value = std::stoi(cell);
  }
  return rows;
}

struct Errors {
  int rows = 0, wrong = 0, spilling = 0;
  double registers = 0, stack_off = 0, stack = 0;
  void add(const Compiled& row, const RegisterEstimate& e) {
    ++rows;
    registers += std::abs(e.registers_per_thread - row.registers) / static_cast<double>(row.registers);
    wrong += (e.stack_words > 0) != (row.stack_bytes > 0);
    spilling += row.stack_bytes > 0;
    stack += row.stack_bytes;
    stack_off += std::abs(4 * e.stack_words - row.stack_bytes);
  }
  void add(const Errors& other) {
    rows += other.rows, wrong += other.wrong, spilling += other.spilling;
    registers += other.registers, stack_off += other.stack_off, stack += other.stack;
  }
  void print(const char* which) const {
    if (rows == 0) return;
    fmt::print("{:<28} {:>3} rows: registers {:.1f}% off on average; spills or not {} wrong", which, rows,
               100 * registers / rows, wrong);
    fmt::print("; {} spill, stack bytes off by {:.0f}% of all\n", spilling, stack == 0 ? 0 : 100 * stack_off / stack);
  }
};

}  // namespace attest
