// A kernel's calls, timed in a worker, so that its crash or hang is a finding there too.
#pragma once
#include <memory>
#include <string>

#include "attest/fuzz/worker.h"
#include "attest/gpu/forward_buffers.h"

namespace attest {

class WorkerSession;

struct TimedCalls {
  std::string refused;  // why the kernel does not take the case; there are no times then
  CallTimes times;
};

class TimingWorker {
 public:
  /// With the kernel made. Throws what making it throws there.
  TimingWorker(const WorkerProgram& program, const std::string& kernel, double hang_seconds);
  ~TimingWorker();
  TimingWorker(const TimingWorker&) = delete;
  TimingWorker& operator=(const TimingWorker&) = delete;

  /// Whether the kernel's record says that it runs on a GPU, whose clock times it. Throws KernelCrashed.
  bool on_device();

  /// As ForwardBuffers::time(). Throws KernelCrashed where the kernel crashes or throws, or one call of it takes longer
  /// than hang_seconds. Where the kernel has a clock of its own that is so of the call before the series, and of each
  /// batch of the series with twice longest_batch_seconds on top.
  TimedCalls time(const Case& c, int repeats);

 private:
  std::unique_ptr<WorkerSession> session_;
  double hang_seconds_;
};

}  // namespace attest
