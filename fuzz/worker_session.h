// A conversation with a worker that may be lost: what it was doing then becomes a verdict, and the next one starts.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "attest/fuzz/campaign.h"
#include "worker_process.h"

namespace attest {

class WorkerSession {
 public:
  /// `hello`: the kernel's name and what else the worker is started with.
  WorkerSession(WorkerProgram program, wire::Json hello, double stop_grace_seconds);

  /// A worker with its kernel made; nothing if one lives. False where request_stop() was called longer than the grace
  /// ago before the kernel was made. Throws what making the kernel throws there, KernelCrashed if that brings the
  /// worker down or takes longer than the program's load_seconds, and EnvironmentError if none can be started.
  [[nodiscard]] bool start();
  void send(const wire::Json& message) const { process_->send(message); }

  struct Limits {
    double kernel_seconds = 0;  // of one call of the kernel; 0: none
    double own_seconds = 0;     // of attest's own work in a property, at one stretch; 0: none
    double batch_seconds = 0;   // of a batch in Kernel::device_seconds(), which is many calls; 0: none
  };
  enum class Event : std::uint8_t { message, lost, stopped };
  /// The next message; or the loss of the worker, whose last words have all been given before; or that request_stop()
  /// was called longer than the grace ago, which leaves the worker as it is. Throws InvalidInput as the worker did, and
  /// std::runtime_error for an exception of attest's own there. Calls `tick` now and then while it waits.
  Event receive(wire::Json& message, const Limits& limits, const std::function<void()>& tick = {});

  /// After `lost`: what to hold against the kernel, and where the worker was; null if it had begun no property.
  const Verdict& loss() const { return loss_; }
  const Property* lost_in() const { return lost_in_; }

  /// What the worker judges right now; null if nothing.
  const Property* current_property() const;
  double longest_run_seconds() const;
  void end() { process_.reset(); }

 private:
  /// Of the kernel's call that it is in; 0: none.
  double kernel_seconds(const Limits& limits) const;
  bool hangs(const Limits& limits) const;
  bool stops();
  Event lose(Status status, const Limits& limits);

  const WorkerProgram program_;
  const wire::Json hello_;
  const double stop_grace_seconds_;
  std::unique_ptr<WorkerProcess> process_;
  std::int64_t stop_seen_ns_ = 0;
  double longest_run_seconds_ = 0;  // of the workers before
  std::string last_words_;          // of a worker whose kernel is lost
  Verdict loss_;
  const Property* lost_in_ = nullptr;
};

}  // namespace attest
