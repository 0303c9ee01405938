// What micro-benchmarks and the driver say of the GPU at hand, as fields of a device file. Throws EnvironmentError in a
// build without CUDA and where there is no GPU.
#pragma once
#include <string>
#include <vector>

#include "attest/simulator/device.h"

namespace attest::tools {

struct Calibration {
  DeviceSpec device;                 // by the name that CUDA has for it: "NVIDIA H200"; its origins say what is known
  std::vector<std::string> missing;  // what could not be measured, or no device file may have: a line each
};

/// Takes less than two minutes; a line a step on stderr.
Calibration calibrate_gpu();

}  // namespace attest::tools
