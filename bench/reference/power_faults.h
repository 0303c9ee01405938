// The faults whose visibility bench/reference/power measures: the CPU kernel with one thing wrong.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "attest/cpu/cpu_kernel.h"

namespace attest::power {

struct PlantedFault {
  std::string_view name;
  std::unique_ptr<Kernel> (*make)();
  bool needs_many_rows = false;  // measured on 4096 rows
};

/// The first is the right kernel.
std::span<const PlantedFault> planted_faults();

/// Kernels for the search of the smallest size that is seen: softmax_scale times 1 + error, O kept in so many bits
/// between key tiles. One at a time: the size is a global, as a kernel's plan carries no state.
std::unique_ptr<Kernel> kernel_with_scale_error(double error);
std::unique_ptr<Kernel> kernel_with_output_bits(int bits);

/// Tiles of 64 queries and 64 keys, so that every fault stands in the same kernel.
CpuPlanSpec measured_plan();

}  // namespace attest::power
