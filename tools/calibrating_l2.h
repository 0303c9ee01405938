// What micro-benchmarks say of the L2 of the GPU at hand.
#pragma once
#include <cstdint>
#include <map>
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

/// Of frames of local memory of so many words, how many lines each of some sets has.
using LocalLines = std::map<int, std::vector<int>>;
/// Of a process that has launched no kernel with a larger frame. Of 400 sets, or of as many as are found in a minute;
/// throws EnvironmentError where these are fewer than 100. Of compute capability 9.0.
LocalLines count_local_lines();
Measured local_memory_sets_of(const LocalLines& lines, const DeviceSpec& device);

/// DeviceSpec::l2_shares. Of compute capability 9.0.
std::vector<double> l2_shares_of_sms();

}  // namespace attest::tools
