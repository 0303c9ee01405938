#include "attest/fuzz/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace attest {

Progress::Progress(bool enabled, std::uint64_t cases, double time_seconds)
    : enabled_(enabled),
      terminal_(::isatty(STDERR_FILENO) == 1),
      cases_(cases),
      time_seconds_(time_seconds),
      next_(terminal_ ? 1 : 5) {}

Progress::~Progress() {
  if (drawn_ && terminal_) std::fputs("\n", stderr);
}

void Progress::show(double seconds, std::uint64_t done, std::uint64_t failed) {
  if (!enabled_ || seconds < next_) return;
  next_ = seconds + (terminal_ ? 1 : 5);
  const double rate = static_cast<double>(done) / seconds;
  double left = rate > 0 ? static_cast<double>(cases_ - done) / rate : 0;
  if (time_seconds_ > 0) left = std::min(left, std::max(0.0, time_seconds_ - seconds));
  // With a limit of time alone, the number of cases is one that nobody reaches.
  const bool counted = cases_ < std::uint64_t{1} << 62;
  draw(fmt::format("{}{} cases, {:.0f} a second, {:.0f} s left, {} failed", done,
                   counted ? fmt::format(" of {}", cases_) : "", rate, left, failed));
}

void Progress::show_of(std::uint64_t done, std::uint64_t of, std::string_view things) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - made_).count();
  const double left = seconds / static_cast<double>(done) * static_cast<double>(of - done);
  say(seconds, fmt::format("{} of {} {}, {:.0f} s left", done, of, things, left));
}

void Progress::say(double seconds, std::string_view what) {
  if (!enabled_ || seconds < next_) return;
  next_ = seconds + (terminal_ ? 1 : 5);
  draw(what);
}

// Not fmt::print, which throws where stderr is closed.
void Progress::draw(std::string_view what) {
  const std::string line = fmt::format("{}{}{}", terminal_ ? "\r\033[K" : "", what, terminal_ ? "" : "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace attest
