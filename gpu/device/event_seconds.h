// What the device takes for a piece of work, by its own clock.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

namespace attest {

/// Seconds of one `enqueue()` on `stream`, measured `repeats` times by events around as many in a row as fill a
/// millisecond: an event resolves about half a microsecond, and the device may wait for the host before the first
/// launch of a row but not before the others. Waits, and tells the end of each row. Throws CudaError.
std::vector<double> event_seconds(cudaStream_t stream, int repeats, const std::function<void()>& enqueue);

}  // namespace attest
