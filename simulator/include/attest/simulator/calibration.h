// A device file for a GPU of which some fields were measured.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attest/simulator/device.h"

namespace attest {

/// What device_from_json_text() reads: the text of a device's file.
nlohmann::ordered_json to_json(const DeviceSpec& device);

/// A field under its name in device files, and what it was measured or asked by: the file's `source`.
struct CalibratedField {
  std::string name;
  double value = 0;
  std::string source;
};

/// Of the devices that travel in the program the one whose compute capability is nearest, then the one whose number of
/// SMs is, then whose memory is; of kind gpu.
DeviceSpec nearest_device(std::int64_t compute_capability, std::int64_t num_sms, std::int64_t dram_bytes);

/// The text of a device file: `fields`, and what they lack as `nearest` has it, marked as an estimate. Throws
/// InvalidInput naming the field for a value that no device can have.
nlohmann::ordered_json calibrated_device(std::string_view name, std::string_view description,
                                         std::span<const CalibratedField> fields, const DeviceSpec& nearest);

}  // namespace attest
