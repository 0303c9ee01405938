#include "attest/fuzz/interrupt.h"

#include <atomic>
#include <iterator>

#include "attest/problem/child.h"

namespace attest {
namespace {

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

constexpr int stopping_signals[] = {SIGINT, SIGTERM, SIGHUP};

extern "C" void end_on_second_signal(int signal) {
  end_children();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

extern "C" void stop_on_signal(int signal) {
  request_stop();
  ::signal(signal, end_on_second_signal);
}

}  // namespace

void request_stop() noexcept { stop = true; }
bool stop_requested() noexcept { return stop; }
void clear_stop() noexcept { stop = false; }

StopOnSignals::StopOnSignals() : before_{} {
  struct sigaction action {};
  action.sa_handler = stop_on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(stopping_signals); ++i) {
    ::sigaction(stopping_signals[i], nullptr, &before_[i]);
    const bool under_nohup = stopping_signals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN;
    if (!under_nohup) ::sigaction(stopping_signals[i], &action, nullptr);
  }
}

StopOnSignals::~StopOnSignals() {
  for (std::size_t i = 0; i < std::size(stopping_signals); ++i) ::sigaction(stopping_signals[i], &before_[i], nullptr);
}

}  // namespace attest
