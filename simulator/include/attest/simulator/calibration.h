// A device file for a GPU of which some fields were measured.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "attest/simulator/device.h"

namespace attest {

/// What device_from_json_text() reads: the text of a device's file.
nlohmann::ordered_json to_json(const DeviceSpec& device);

/// Of the devices that travel in the program the one whose compute capability is nearest, then the one whose number of
/// SMs is, then whose memory is; of kind gpu.
DeviceSpec nearest_device(std::int64_t compute_capability, std::int64_t num_sms, std::int64_t dram_bytes);

/// The device of which `measured` has the fields that its origins name; the others are as `nearest` has them, marked as
/// estimates. Of those, gpc_clocks are 1 where the numbers of GPCs differ, and l2_slices_per_partition is the most that
/// divides the sets. Throws InvalidInput naming the field for a value that no device can have.
DeviceSpec calibrated_device(std::string_view name, std::string_view description, const DeviceSpec& measured,
                             const DeviceSpec& nearest);

/// Ways of a set-associative cache with LRU, a power of two up to 32, of which `walks` were read in turns: lines that
/// lie in random sets and fill so much of the cache, and the share of them that missed. A line misses where the others
/// of its set, Poisson distributed, are as many as ways.
struct CyclicWalk {
  double filled = 0, missed = 0;
};
std::int64_t ways_of(const std::vector<CyclicWalk>& walks);

}  // namespace attest
