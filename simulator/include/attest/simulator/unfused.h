// What the three-kernel path costs: S = Q K^T written, softmax read and written in place, O = P V.
#pragma once
#include <array>
#include <string_view>

#include "attest/problem/problem.h"
#include "attest/simulator/device.h"

namespace attest {

/// One of the three kernels.
struct UnfusedKernel {
  std::string_view name;  // "S = Q K^T", "P = softmax(S)" or "O = P V"
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double operand_bytes = 0, result_bytes = 0;  // what it reads and writes, wherever it finds it and leaves it
  double dirty_bytes_alone = 0;                // of the result, still in L2 at its end where nothing was dirty before
  double flops = 0;                            // of its matrix product
  double time_us = 0;                          // its launch included
};

struct UnfusedCost {
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double flops = 0;             // of the whole rectangle: the matrix products skip nothing
  double time_us = 0;           // three kernels, launches included
  double matrix_bytes = 0;      // S, as large as P
  double dirty_bytes_left = 0;  // still in L2 at the end
  static constexpr int kernels = 3;
  std::array<UnfusedKernel, kernels> steps;  // what the sums above are made of, in order
};

/// S and P are in the case's dtype, one row of seqlen_k a query, masked pairs included. A matrix that fits one L2
/// partition is found there by the next kernel, a larger one comes from DRAM; of what is written the ways that may stay
/// dirty hold the end. Softmax and O = P V take the longer of their arithmetic and their bytes, S = Q K^T, whose tiles
/// are loaded, multiplied once or twice and stored, both one after the other; each takes a launch.
UnfusedCost unfused_cost(const Problem& problem, const DeviceSpec& device);

}  // namespace attest
