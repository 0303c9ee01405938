// A calibration as attest calibrate prints and writes it.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "calibrating.h"

namespace attest::tools {

struct CalibrationReport {
  nlohmann::ordered_json json;  // {"nearest", "missing", "device"}: the last is the device's file
  std::string text;             // each known field beside the nearest device's, then what is not known
};

/// `name` is the device's own in its file; what was not measured is as `nearest` has it. Throws as calibrated_device().
CalibrationReport report_of(const Calibration& calibration, const DeviceSpec& nearest, std::string_view name);

}  // namespace attest::tools
