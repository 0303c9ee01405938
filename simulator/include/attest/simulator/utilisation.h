// How busy a kernel keeps a resource, fused or not.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "attest/simulator/device.h"

namespace attest {

/// The share of a resource's peak that a kernel uses over its predicted time, 0 to 1.
struct Utilisation {
  // "tensor", "exp", "FMA", "ALU", "issue", "shared memory", "L2" or "DRAM"; of cube and vector cores "cube", "vector"
  std::string_view resource;
  double fraction = 0;
};

/// The busiest resource; "latency" if none reaches a third of its peak, "nothing to do" if there is none.
std::string bound_of(const std::vector<Utilisation>& utilisation);

/// Cycles of each pipe that an SM is busy, by itself, and bytes that cross L2 and DRAM; all of a kernel's.
struct BusyCycles {
  double tensor = 0, exp = 0, fma = 0, alu = 0, issue = 0, smem = 0;
  double l2_bytes = 0, dram_bytes = 0;
};
std::vector<Utilisation> utilisation_of(const BusyCycles& work, double cycles, const DeviceSpec& device);

/// Bytes a clock of the SMs that kernels move through DRAM: what a device copy reaches of its rate.
double dram_bytes_per_clock(const DeviceSpec& device);
/// And those that only read.
double dram_read_bytes_per_clock(const DeviceSpec& device);
/// What DRAM takes for a kernel's bytes: as many as are written are copied, the rest of the reads go alone.
double dram_cycles(double read, double written, const DeviceSpec& device);

}  // namespace attest
