// Launches that a profiler has made again and again, once for each of its passes.
#pragma once

namespace attest {

/// The same launches, in the same order, each time. All throw CudaError.
class CountedWork {
 public:
  CountedWork() = default;
  virtual ~CountedWork() = default;
  CountedWork(const CountedWork&) = delete;
  CountedWork& operator=(const CountedWork&) = delete;

  /// Enqueues the kernels that are counted, nothing else.
  virtual void launch() = 0;
  virtual void wait() = 0;
  /// Leaves clean lines in L2 that are not the kernels', and waits.
  virtual void empty_l2() = 0;
};

}  // namespace attest
