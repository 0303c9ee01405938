// A build without CUDA says so where counters are asked for.
#include <fmt/format.h>

#include "attest/problem/error.h"
#include "attest/problem/exit_code.h"
#include "calibrating.h"
#include "measuring.h"

namespace attest::tools {
namespace {

[[noreturn]] void refuse() {
  throw EnvironmentError(
      "counters are a GPU's, and this attest was built without CUDA; build with cmake --preset cuda where nvcc is");
}

}  // namespace

Provenance measuring_gpu() { refuse(); }
std::vector<double> gpc_sides_here(const DeviceSpec& /*device*/) { refuse(); }
void expect_gpu(std::string_view otherwise) {
  throw EnvironmentError(fmt::format(
      "kernel: it runs on a GPU, and this attest was built without CUDA; build with cmake --preset cuda where nvcc is, "
      "or {}",
      otherwise));
}
std::optional<std::string> unmeasurable(const MeasuredCall& /*call*/) { refuse(); }
void measure_with_cupti(std::vector<MeasuredCall>& /*calls*/, bool /*warm*/, bool /*progress*/) { refuse(); }
Calibration calibrate_gpu() { refuse(); }
int make_marked_calls(const std::string& /*file*/) { return exit_environment; }

}  // namespace attest::tools
