#include "event_seconds.h"

#include <algorithm>
#include <cmath>

#include "attest/gpu/cuda_error.h"
#include "attest/gpu/run_place.h"

namespace attest {
namespace {

class Event {
 public:
  Event() { cuda_check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) const { cuda_check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  double seconds_since(const Event& start) const {
    cuda_check(cudaEventSynchronize(event_), "the kernel");
    float milliseconds = 0;
    cuda_check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

constexpr double row_seconds = 1e-3;
constexpr int longest_row = 1000;
constexpr int warm_rows = 3;  // the clock rises from idle while they run

}  // namespace

std::vector<double> event_seconds(cudaStream_t stream, int repeats, const std::function<void()>& enqueue) {
  const Event start, stop;
  const auto row = [&](int launches) {
    start.record(stream);
    for (int i = 0; i < launches; ++i) enqueue();
    stop.record(stream);
    const double seconds = stop.seconds_since(start);
    tell_end_of_batch();
    return seconds / launches;
  };
  int launches = 1;
  for (int i = 0; i < warm_rows; ++i)
    launches = std::clamp(static_cast<int>(std::ceil(row_seconds / row(launches))), 1, longest_row);
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(repeats));
  for (int i = 0; i < repeats; ++i) seconds.push_back(row(launches));
  return seconds;
}

}  // namespace attest
