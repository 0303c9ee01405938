#include "counted_launches.h"

#include "attest/gpu/cuda_error.h"

namespace attest::tools {

void CountedLaunches::launch() {
  for (const Launch& l : launches_) l(stream_.get());
}

void CountedLaunches::wait() { cuda_check(cudaStreamSynchronize(stream_.get()), "a launch that is counted"); }

std::vector<double> CountedLaunches::count(const char* counter) {
  std::vector<double> values;
  for (const LaunchCounters& l : CounterReader({counter}).read(*this, true)) values.push_back(l.values.at(counter));
  return values;
}

}  // namespace attest::tools
