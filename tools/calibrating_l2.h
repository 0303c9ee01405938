// What micro-benchmarks say of the L2 of the GPU at hand.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "attest/simulator/device.h"

namespace attest::tools {

/// A field of a device, and what was seen.
struct Measured {
  double value = 0;
  std::string how;
};

struct L2Ways {
  Measured partitions, ways, dirty_ways;
};
/// By what a walk that begins again finds, as DRAM's reads say; dirty ways by what of a write is not yet in DRAM.
/// Throws EnvironmentError where counters cannot be read, or say nothing.
L2Ways measure_l2_ways(std::int64_t l2_bytes);

/// DeviceSpec::l2_shares. Of compute capability 9.0.
std::vector<double> l2_shares_of_sms();

}  // namespace attest::tools
