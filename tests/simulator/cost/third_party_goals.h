// Calls of kernels that nobody here wrote, as a GPU's counters saw them, cold caches, one row a call, beside the
// models: each kernel keeps the goals of third_party_goals.cpp, or is named there with what is reached and why.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attest/simulator/report.h"
#include "measured/counted_calls.h"

namespace attest {

/// Predicted over measured; NaN where a file lacks the counter.
struct Ratios {
  double wavefronts, ideal_wavefronts, sm_read, sm_write, l2_read, crossing, dram_read, dram_write, cycles, registers,
      xu, stores, loads;
  double written;  // 1 + what is off of DRAM's writes over what must be written; NaN where most of it stays in L2
};

Ratios ratios_of(const SimulationReport& r, const CountedCall& row);

/// Where PyTorch's first call under Nsight Compute has its tensors; what calls before it leave is not known of others.
constexpr std::int64_t first_of_torch = std::int64_t{114} << 20;

/// All rows of a file in simulator/measured, printed; what each kernel's keep of the goals is expected. `ragged` bounds
/// wavefronts where the last key tile is in part. `memory_begin`: byte of memory at which their tensors begin.
std::map<std::string, std::vector<Ratios>> score(const std::string& file, const char* device = "h200",
                                                 double ragged = 0.002, std::int64_t memory_begin = first_of_torch);

}  // namespace attest
