// Launches of CTAs that wait and store a word, for a profiler to time, and what goes along with a launch. All throw
// std::runtime_error with CUDA's words where a call of it fails.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

namespace attest::hardware {

/// CTAs that each wait for `wait_cycles` of their SM's clock and then store a word a thread, as kernels with a result
/// do: `waves` times as many as fit the device's SMs, or one alone.
struct WaitingLaunch {
  int threads = 128, smem_bytes = 0, ctas_an_sm = 1;
  int cluster = 0;  // as the launch says; 0: it says nothing of clusters
  int waves = 1, ctas = 1, wait_cycles = 0;
};

class WaitingLaunches {
 public:
  /// None larger than `smem_bytes_per_cta`, and without clusters where there are none. The first is of one CTA, the
  /// second of one an SM.
  WaitingLaunches(int smem_bytes_per_cta, bool clusters);
  ~WaitingLaunches();
  WaitingLaunches(const WaitingLaunches&) = delete;
  WaitingLaunches& operator=(const WaitingLaunches&) = delete;

  const std::vector<WaitingLaunch>& all() const { return launches_; }
  /// Returns at once: what goes wrong while it runs is thrown by who waits for the stream.
  void launch(const WaitingLaunch& launch, cudaStream_t stream) const;

 private:
  struct Memory;
  std::vector<WaitingLaunch> launches_;
  std::unique_ptr<Memory> memory_;
};

/// Seconds from a kernel's end to the start of the next one in its stream: the median over pairs of launches.
double seconds_between_launches();

/// Cycles until a warp has a line of 64 bytes of its kernel's arguments that it has not used before, of several that it
/// uses one after the other.
double argument_line_cycles();

}  // namespace attest::hardware
