// What a worker does right now, in memory that its parent shares: all that a crash or a hang leaves behind.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

namespace attest {

/// The kernel's functions.
enum class KernelCall : std::int32_t { capability, numerics, unsupported, run, run_backward, plan, device_seconds };
std::string_view to_string(KernelCall call);  // "?" for any other number: a kernel may overwrite the record

/// One process writes, another reads while it does and after its end. Times are CLOCK_MONOTONIC in nanoseconds, which
/// processes of one machine share.
struct FlightRecord {
  std::atomic<std::int32_t> property{-1};        // index in properties() of the one that is judged; -1: none
  std::atomic<std::int64_t> own_since_ns{0};     // that attest itself is at work on it; 0: nothing is judged
  std::atomic<std::int64_t> kernel_since_ns{0};  // 0: outside the kernel
  std::atomic<std::int32_t> kernel_call{0};      // a KernelCall, inside it
  std::atomic<std::int64_t> longest_run_ns{0};   // of the kernel's calls that came back
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<std::int32_t>::is_always_lock_free,
              "a lock would lie in one process");

std::int64_t monotonic_ns();

/// From here on this process writes `record`; none (null) at the start, and then the functions below do nothing.
void set_flight_record(FlightRecord* record);

/// What is judged from here on.
void name_in_flight(std::string_view property);

/// Between construction and destruction this process is inside the kernel under test, and nowhere else: a crash or a
/// hang of the oracle is not the kernel's. One at a time.
class InFlight {
 public:
  explicit InFlight(KernelCall call);
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
};

/// Inside the kernel, from where its time counts anew: of one call that is many.
void renew_in_flight();

}  // namespace attest
