#include "attest/fuzz/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <iterator>

namespace attest {
namespace {

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

constexpr int stopping_signals[] = {SIGINT, SIGTERM, SIGHUP};

struct sigaction before[std::size(stopping_signals)];

extern "C" void stop_on_signal(int signal) {
  request_stop();
  for (std::size_t i = 0; i < std::size(stopping_signals); ++i)
    if (stopping_signals[i] == signal) ::sigaction(signal, &before[i], nullptr);
}

}  // namespace

void request_stop() noexcept { stop = true; }
bool stop_requested() noexcept { return stop; }
void clear_stop() noexcept { stop = false; }

StopOnSignals::StopOnSignals() {
  struct sigaction action {};
  action.sa_handler = stop_on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(stopping_signals); ++i) {
    ::sigaction(stopping_signals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) ::sigaction(stopping_signals[i], &action, nullptr);
  }
}

StopOnSignals::~StopOnSignals() {
  for (std::size_t i = 0; i < std::size(stopping_signals); ++i) ::sigaction(stopping_signals[i], &before[i], nullptr);
}

}  // namespace attest
