// Launches of micro-benchmarks that a profiler counts.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <utility>
#include <vector>

#include "attest/counters/counter_reader.h"
#include "attest/gpu/device.h"

namespace attest::tools {

/// They begin with what those before have left.
class CountedLaunches : public CountedWork {
 public:
  using Launch = std::function<void(cudaStream_t)>;
  explicit CountedLaunches(std::vector<Launch> launches) : launches_(std::move(launches)) {}
  void launch() override;
  void wait() override;
  void empty_l2() override { wait(); }

  /// A counter of each. Throws EnvironmentError where counters cannot be read.
  std::vector<double> count(const char* counter);

 private:
  std::vector<Launch> launches_;
  Stream stream_;
};

}  // namespace attest::tools
