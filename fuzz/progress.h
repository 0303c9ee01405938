// The line that tells how far a campaign is.
#pragma once
#include <cstdint>

namespace attest {

class Progress {
 public:
  /// `cases`: how many there are to do; `time_seconds` 0: no limit.
  Progress(bool enabled, std::uint64_t cases, double time_seconds);
  ~Progress();  // ends the line
  /// Redraws at most once a second on a terminal and writes a line every five seconds elsewhere.
  void show(double seconds, std::uint64_t done, std::uint64_t failed);

 private:
  bool enabled_, terminal_, drawn_ = false;
  std::uint64_t cases_;
  double time_seconds_;
  double next_;
};

}  // namespace attest
