// Hardware counters of a call's launches, read in this process through CUPTI's range profiler.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "attest/counters/counted_work.h"
#include "attest/counters/launch_counters.h"

namespace attest {

/// One reader a process at a time; any number of calls.
class CounterReader {
 public:
  /// `metrics` by the profiler's names. Throws EnvironmentError, saying what to do, where CUPTI cannot be opened, the
  /// counters may not be read, or the device has none of such a name.
  explicit CounterReader(std::vector<std::string> metrics);
  ~CounterReader();
  CounterReader(const CounterReader&) = delete;
  CounterReader& operator=(const CounterReader&) = delete;

  /// How often the work is done for one reading: so many metrics do not fit the hardware's counters at once.
  std::size_t passes() const;

  /// Does the work once for its launches' registers and shared memory, then once a pass. Before each pass L2 is
  /// emptied, or, `warm`, the work is done once. Beside `metrics` each launch has
  ///   launch__registers_per_thread, launch__shared_mem_per_block (with what the system reserves), launch__grid_size,
  ///   launch__block_size
  /// as ncu names them. Throws CudaError and EnvironmentError.
  std::vector<LaunchCounters> read(CountedWork& work, bool warm);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace attest
