// Launches of CTAs that do nothing, or wait, for a profiler to time. launch() and seconds_between_launches() throw
// std::runtime_error with CUDA's words where a call of it fails.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

namespace attest::hardware {

/// As many CTAs as fit an SM `waves` times over, each of which waits for `wait_cycles` of its SM's clock.
struct WaitingLaunch {
  int threads = 128, smem_bytes = 0, ctas_an_sm = 1, cluster = 1;
  int waves = 1, wait_cycles = 0;
};
/// Those that are measured; none larger than `smem_bytes_per_cta`, and without clusters where there are none.
std::vector<WaitingLaunch> waiting_launches(int smem_bytes_per_cta, bool clusters);
/// Returns at once: what goes wrong while it runs is thrown by who waits for the stream.
void launch(const WaitingLaunch& launch, cudaStream_t stream);

/// Seconds from a kernel's end to the start of the next one in its stream: the median over pairs of launches.
double seconds_between_launches();

}  // namespace attest::hardware
