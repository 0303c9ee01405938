#include <chrono>
#include <ctime>

#include "attest/gpu/forward_buffers.h"
#include "run_kernel.h"

namespace attest {
namespace {

double process_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The clock ticks in nanoseconds, but a shorter run is mostly the caches' state.
constexpr double shortest_seconds = 0.01;

}  // namespace

CallTimes ForwardBuffers::time(Kernel& kernel, const Case& c, const Inputs& inputs, int repeats) {
  args_ = lay_out(c, inputs);
  fill_outputs(false);
  CallTimes times;
  times.seconds = run_kernel([&] { return kernel.device_seconds(c, args_, repeats); });
  times.on_device = kernel.capability().device != "cpu";
  if (!times.seconds.empty()) return times;
  run_kernel([&] { return kernel.run(c, args_); });  // first touches of memory and code are no part of a call
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const double start = process_seconds();
    const auto began = std::chrono::steady_clock::now();
    int calls = 0;
    double spent = 0;
    do {
      run_kernel([&] { return kernel.run(c, args_); });
      spent = process_seconds() - start, ++calls;
      // of a kernel that sleeps, or has another process or a GPU work for it, no number of calls takes CPU time
    } while (spent < shortest_seconds &&
             std::chrono::steady_clock::now() - began < std::chrono::duration<double>(longest_batch_seconds));
    times.seconds.push_back(spent / calls);
  }
  return times;
}

}  // namespace attest
