#include "worker_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "attest/fuzz/interrupt.h"
#include "attest/problem/error.h"
#include "attest/problem/text.h"

namespace attest {
namespace {

constexpr double look_every_seconds = 0.1;

// An InvalidInput that says what the worker's said: "<field>: <value> <limit>".
[[noreturn]] void throw_invalid(const std::string& field, const std::string& what) {
  const std::string rest = what.substr(std::min(what.size(), field.size() + 2));
  const std::size_t space = rest.find(' ');
  throw InvalidInput(field, rest.substr(0, space), space == std::string::npos ? "" : rest.substr(space + 1));
}

double seconds_since(std::int64_t ns) { return static_cast<double>(monotonic_ns() - ns) * 1e-9; }

}  // namespace

WorkerSession::WorkerSession(WorkerProgram program, wire::Json hello, double stop_grace_seconds)
    : program_(std::move(program)), hello_(std::move(hello)), stop_grace_seconds_(stop_grace_seconds) {}

bool WorkerSession::start() {
  if (process_) return true;
  const auto kernel_is_lost = [&](const std::string& how) {
    return KernelCrashed(fmt::format("kernel '{}' {}", shortened(hello_.at("kernel").get<std::string>(), 200), how));
  };
  auto process = std::make_unique<WorkerProcess>(program_);
  process->send(hello_);
  const std::int64_t began_ns = monotonic_ns();
  wire::Json answer;
  while (answer.is_null()) {
    const double left = program_.load_seconds - seconds_since(began_ns);
    switch (process->receive(answer, std::clamp(left, 0.0, look_every_seconds))) {
      case WorkerProcess::Event::timeout:
        if (stops()) return false;
        if (left <= 0) throw kernel_is_lost(fmt::format("is not loaded after {} s, the limit", program_.load_seconds));
        break;
      case WorkerProcess::Event::gone:
        throw kernel_is_lost(fmt::format("ended the process that loaded it: {}", process->end()));
      case WorkerProcess::Event::message:
        break;
    }
  }
  if (answer.contains("lost"))
    throw kernel_is_lost(fmt::format("is lost while it is loaded: {}", answer.at("lost").get<std::string>()));
  if (answer.contains("invalid"))
    throw_invalid(answer.at("field").get<std::string>(), answer.at("invalid").get<std::string>());
  if (answer.contains("refused")) throw EnvironmentError(answer.at("refused").get<std::string>());
  process_ = std::move(process);
  return true;
}

WorkerSession::Event WorkerSession::receive(wire::Json& message, const Limits& limits,
                                            const std::function<void()>& tick) {
  for (double seconds = look_every_seconds;;) {
    switch (process_->receive(message, seconds)) {
      case WorkerProcess::Event::message:
        if (message.contains("invalid"))
          throw_invalid(message.at("field").get<std::string>(), message.at("invalid").get<std::string>());
        if (message.contains("memory"))
          throw EnvironmentError("out of memory for the case's truth; fewer batch entries, heads or tokens need less");
        if (message.contains("lost")) {  // its last words: the end of the process follows
          last_words_ = message.at("lost").get<std::string>();
          continue;
        }
        if (message.contains("bug")) throw std::runtime_error(message.at("bug").get<std::string>());
        return Event::message;
      case WorkerProcess::Event::gone:
        return lose(Status::crashed, limits);
      case WorkerProcess::Event::timeout:
        break;
    }
    if (seconds == 0) return lose(Status::hung, limits);
    if (tick) tick();
    if (stops()) return Event::stopped;
    if (hangs(limits)) seconds = 0;  // once more, for what it may have said meanwhile
  }
}

// The user waits, and has for as long as the grace.
bool WorkerSession::stops() {
  if (!stop_requested()) return false;
  if (stop_seen_ns_ == 0) stop_seen_ns_ = monotonic_ns();
  return seconds_since(stop_seen_ns_) >= stop_grace_seconds_;
}

double WorkerSession::kernel_seconds(const Limits& limits) const {
  const auto call = static_cast<KernelCall>(process_->record().kernel_call.load());
  return call == KernelCall::device_seconds ? limits.batch_seconds : limits.kernel_seconds;
}

bool WorkerSession::hangs(const Limits& limits) const {
  const std::int64_t kernel_since = process_->record().kernel_since_ns;
  const double most = kernel_seconds(limits);
  if (kernel_since != 0 && most > 0) return seconds_since(kernel_since) > most;
  const std::int64_t own_since = process_->record().own_since_ns;
  return own_since != 0 && limits.own_seconds > 0 && seconds_since(own_since) > limits.own_seconds;
}

WorkerSession::Event WorkerSession::lose(Status status, const Limits& limits) {
  lost_in_ = current_property();
  const bool in_kernel = process_->record().kernel_since_ns != 0;
  const auto call = static_cast<KernelCall>(process_->record().kernel_call.load());
  const double most = in_kernel ? kernel_seconds(limits) : limits.own_seconds;
  longest_run_seconds_ = longest_run_seconds();
  const std::string process_ending = process_->end();
  const std::string ending = last_words_.empty() ? process_ending : std::exchange(last_words_, {});
  process_.reset();
  loss_ = {};
  loss_.status = status;
  loss_.rule = "worker";
  loss_.error_over_budget = std::numeric_limits<double>::infinity();
  if (status == Status::crashed)
    loss_.detail = ending;
  else
    loss_.detail = fmt::format("no end after {:.3g} s", most);
  if (!in_kernel)
    loss_.detail += " outside the kernel: by memory that it damaged before, or a bug in attest";
  else if (call == KernelCall::run || call == KernelCall::run_backward)
    loss_.detail += " in the kernel";
  else if (call == KernelCall::device_seconds)
    loss_.detail += " in a series of timed calls of the kernel";
  else
    loss_.detail += fmt::format(" in the kernel's {}()", to_string(call));
  return Event::lost;
}

const Property* WorkerSession::current_property() const {
  const auto all = properties();
  const auto index = static_cast<std::size_t>(process_->record().property.load());
  return index < all.size() ? &all[index] : nullptr;
}

double WorkerSession::longest_run_seconds() const {
  if (!process_) return longest_run_seconds_;
  return std::max(longest_run_seconds_, static_cast<double>(process_->record().longest_run_ns) * 1e-9);
}

}  // namespace attest
