// Where a kernel's tensors are while it runs: the host's memory, or a device's.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "attest/gpu/api_problem.h"
#include "attest/gpu/kernel.h"

namespace attest {

/// What a call sees there.
struct PlaceOfRun {
  Relocate at;                // where a pointer into the memory is
  void* workspace = nullptr;  // aligned to 256, NaN; null where none was asked for
  void* stream = nullptr;     // a cudaStream_t; null on the host
};

class RunPlace {
 public:
  RunPlace() = default;
  virtual ~RunPlace() = default;
  RunPlace(const RunPlace&) = delete;
  RunPlace& operator=(const RunPlace&) = delete;

  /// No workspace is larger.
  virtual std::int64_t most_workspace_bytes() const = 0;
  /// Takes `memory`, margins and poison included, there and back around call(). What changed beyond even that, such as
  /// behind the workspace, is a hazard of the report. Throws what call() throws, and KernelLost where nothing more can
  /// run in this process.
  virtual RunReport run(std::span<const MemoryRange> memory, std::int64_t workspace_bytes,
                        const std::function<void(const PlaceOfRun&)>& call) = 0;
  /// Seconds of what call() enqueues, by the place's own clock, as Kernel::device_seconds; none where it has no clock.
  virtual std::vector<double> device_seconds(std::span<const MemoryRange> /*memory*/, std::int64_t /*workspace_bytes*/,
                                             const std::function<void(const PlaceOfRun&)>& /*call*/, int /*repeats*/) {
    return {};
  }
};

/// Whoever watches for hangs hears, in this process, of the end of every batch of launches that a place times, measured
/// or not, so that one is told in the batch that it is in. Null, as at the start: nobody does.
void hear_of_batches(void (*listener)());
/// By places.
void tell_end_of_batch();

/// The memory stays where it is.
std::unique_ptr<RunPlace> make_host_place();

}  // namespace attest
