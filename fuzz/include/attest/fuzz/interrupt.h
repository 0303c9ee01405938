// Ctrl-C, SIGTERM, and SIGHUP of a terminal that goes.
#pragma once

namespace attest {

/// Asks the campaign that runs to stop after the cases in flight. Async-signal-safe.
void request_stop() noexcept;
bool stop_requested() noexcept;
/// What was asked for has happened.
void clear_stop() noexcept;

/// While it lives, those of SIGINT, SIGTERM and SIGHUP that are not ignored (as nohup has it) are request_stop(); a
/// second one of a kind does what it did before: tools::EndOnSignals ends attest and each Child at once. One lives at a
/// time.
class StopOnSignals {
 public:
  StopOnSignals();
  ~StopOnSignals();
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;
};

}  // namespace attest
