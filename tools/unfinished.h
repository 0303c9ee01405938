// What SIGINT, SIGTERM and SIGHUP do to a command, and to the files that it is writing.
#pragma once
#include <csignal>
#include <filesystem>

namespace attest::tools {

/// While it lives, SIGINT, SIGTERM and SIGHUP kill every Child with its group, delete every unfinished file and end the
/// process with exit_interrupted. A signal that was ignored at the start stays so. A pipe that nobody reads is an error
/// of write(). Commands that save what they have found replace it (StopOnSignals).
class EndOnSignals {
 public:
  EndOnSignals();
  ~EndOnSignals();
  EndOnSignals(const EndOnSignals&) = delete;
  EndOnSignals& operator=(const EndOnSignals&) = delete;

 private:
  struct sigaction before_[3];
};

/// While one lives, a signal waits: around steps that belong together. Of one thread only.
class HoldSignals {
 public:
  HoldSignals();
  ~HoldSignals();
  HoldSignals(const HoldSignals&) = delete;
  HoldSignals& operator=(const HoldSignals&) = delete;
};

/// From here on a signal deletes it; between that and making it signals must be held, and likewise at its end.
void list_unfinished(const std::filesystem::path& path);
void delist_unfinished(const std::filesystem::path& path);

}  // namespace attest::tools
