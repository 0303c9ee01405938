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
  double flops = 0;    // of its matrix product
  double time_us = 0;  // its launch included
};

struct UnfusedCost {
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double flops = 0;         // of the whole rectangle: the matrix products skip nothing
  double time_us = 0;       // three kernels, launches included
  double matrix_bytes = 0;  // S, as large as P
  static constexpr int kernels = 3;
  std::array<UnfusedKernel, kernels> steps;  // what the sums above are made of, in order
};

/// S and P are in the case's dtype, one row of seqlen_k a query, masked pairs included. A matrix that fits one L2
/// partition is found there by the next kernel, a larger one comes from DRAM; what is written reaches DRAM. Each kernel
/// takes the longer of its arithmetic and its bytes, and a launch.
UnfusedCost unfused_cost(const Problem& problem, const DeviceSpec& device);

}  // namespace attest
