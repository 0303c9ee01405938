#include "process_limits.h"

#include <fmt/format.h>

namespace attest {
namespace {

// In the order of their numbers on Linux (getrlimit(2)).
constexpr const char* names[RLIM_NLIMITS] = {"RLIMIT_CPU",      "RLIMIT_FSIZE", "RLIMIT_DATA",   "RLIMIT_STACK",
                                             "RLIMIT_CORE",     "RLIMIT_RSS",   "RLIMIT_NPROC",  "RLIMIT_NOFILE",
                                             "RLIMIT_MEMLOCK",  "RLIMIT_AS",    "RLIMIT_LOCKS",  "RLIMIT_SIGPENDING",
                                             "RLIMIT_MSGQUEUE", "RLIMIT_NICE",  "RLIMIT_RTPRIO", "RLIMIT_RTTIME"};
static_assert(RLIMIT_CPU == 0 && RLIMIT_STACK == 3 && RLIMIT_NPROC == 6 && RLIMIT_AS == 9 && RLIMIT_RTTIME == 15);

rlimit limit_now(int which) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(which), &limit);
  return limit;
}

std::string words(rlim_t limit) { return limit == RLIM_INFINITY ? "no limit" : fmt::format("{}", limit); }

}  // namespace

ProcessLimits::ProcessLimits() {
  for (int which = 0; which < count; ++which) limits_[static_cast<std::size_t>(which)] = limit_now(which);
}

std::string ProcessLimits::restored() const {
  int lowered = -1;
  rlim_t to = 0;
  for (int which = 0; which < count; ++which) {
    const rlimit before = limits_[static_cast<std::size_t>(which)], now = limit_now(which);
    if (now.rlim_cur >= before.rlim_cur) continue;  // RLIM_INFINITY is the largest
    rlimit back = before;
    if (::setrlimit(static_cast<__rlimit_resource>(which), &back) != 0) {  // only root raises the hard one
      back = {now.rlim_max, now.rlim_max};
      ::setrlimit(static_cast<__rlimit_resource>(which), &back);
    }
    if (lowered < 0) lowered = which, to = now.rlim_cur;
  }
  if (lowered < 0) return "";  // words only after all are back: they take memory
  const rlim_t before = limits_[static_cast<std::size_t>(lowered)].rlim_cur;
  return fmt::format("{}: {} is below {}, which it was", names[lowered], to, words(before));
}

}  // namespace attest
