#include "unfinished.h"

#include <unistd.h>

#include <atomic>
#include <iterator>
#include <set>
#include <string>

#include "attest/problem/child.h"
#include "attest/problem/exit_code.h"

namespace attest::tools {
namespace {

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

// The handler runs on any thread, at any time: it touches the list only where nobody holds signals, and whoever begins
// to hold them after that ends here instead of changing the list.
std::atomic<int> holders{0};
std::atomic<bool> ending{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

std::set<std::string>& unfinished() {
  static auto* const list = new std::set<std::string>;  // never destroyed: a signal may come while statics are
  return *list;
}

[[noreturn]] void end_now() {
  end_children();
  for (const std::string& path : unfinished()) ::unlink(path.c_str());
  constexpr std::string_view line = "attest: interrupted\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(exit_interrupted);
}

extern "C" void end_on_signal(int) {
  ending = true;
  if (holders == 0) end_now();
}

}  // namespace

EndOnSignals::EndOnSignals() : before_{} {
  unfinished();                   // made before a signal can ask for it
  std::signal(SIGXFSZ, SIG_IGN);  // past the limit on a file's size write() then fails, and what is there is deleted
  // likewise where nobody reads a pipe any more; not ignored, as the programs that are started then would ignore it too
  std::signal(SIGPIPE, [](int) {});
  for (std::size_t i = 0; i < std::size(ending_signals); ++i) {
    ::sigaction(ending_signals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = end_on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(ending_signals[i], &action, nullptr);
  }
}

EndOnSignals::~EndOnSignals() {
  for (std::size_t i = 0; i < std::size(ending_signals); ++i) ::sigaction(ending_signals[i], &before_[i], nullptr);
}

HoldSignals::HoldSignals() {
  ++holders;
  if (ending && holders == 1) end_now();
}

HoldSignals::~HoldSignals() {
  if (--holders == 0 && ending) end_now();
}

void list_unfinished(const std::filesystem::path& path) { unfinished().insert(path.string()); }
void delist_unfinished(const std::filesystem::path& path) { unfinished().erase(path.string()); }

}  // namespace attest::tools
