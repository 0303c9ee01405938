// The line that tells how far a campaign is.
#pragma once
#include <chrono>
#include <cstdint>
#include <string_view>

namespace attest {

class Progress {
 public:
  /// `cases`: how many there are to do; `time_seconds` 0: no limit.
  Progress(bool enabled, std::uint64_t cases, double time_seconds);
  ~Progress();  // ends the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Redraws at most once a second on a terminal and writes a line every five seconds elsewhere.
  void show(double seconds, std::uint64_t done, std::uint64_t failed);
  /// The same of `of` things of that name, of which `done` are done since this was made.
  void show_of(std::uint64_t done, std::uint64_t of, std::string_view things);
  /// The same of something that has no number.
  void say(double seconds, std::string_view what);

 private:
  void draw(std::string_view what);

  bool enabled_, terminal_, drawn_ = false;
  std::uint64_t cases_;
  double time_seconds_;
  double next_;
  std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
};

}  // namespace attest
