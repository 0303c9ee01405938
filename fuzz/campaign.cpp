#include "attest/fuzz/campaign.h"

#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "attest/fuzz/in_flight.h"
#include "attest/problem/error.h"
#include "progress.h"

namespace attest {
namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

extern "C" void stop_on_signal(int signal) {
  request_stop();
  ::signal(signal, SIG_DFL);
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A way of failing, and the first case of it.
struct Kind {
  const Property* property;
  std::uint64_t k = std::numeric_limits<std::uint64_t>::max();
  Case found;
  Verdict verdict;
  std::uint64_t seen = 0;
};

// What the threads share.
class Run {
 public:
  Run(const KernelFactory& make_kernel, const CampaignOptions& options)
      : options_(options),
        make_kernel_(make_kernel),
        mine_(options.cases > options.shard_index
                  ? (options.cases - options.shard_index + options.shard_count - 1) / options.shard_count
                  : 0) {}

  CampaignResult run() {
    stop_requested = false;
    const int threads = thread_count();
    {
      Progress progress(options_.progress, mine_, options_.time_seconds);
      std::vector<std::jthread> workers;
      running_ = threads;
      workers.reserve(static_cast<std::size_t>(threads) + 1);
      for (int i = 0; i < threads; ++i) workers.emplace_back([this] { work(); });
      wait(progress);
      result_.seconds = seconds_since(start_);
      running_ = 1;
      workers.emplace_back([this] { shrink_kinds(); });
      wait(progress);
    }
    if (error_) std::rethrow_exception(error_);
    result_.threads = threads;
    result_.first_uncovered_k = options_.shard_index + options_.shard_count * taken_;
    result_.stopped = stopped_;
    return std::move(result_);
  }

 private:
  int thread_count() const {
    const auto wanted = options_.threads > 0 ? static_cast<std::uint64_t>(options_.threads)
                                             : std::max(1u, std::thread::hardware_concurrency());
    return static_cast<int>(std::min(wanted, std::max<std::uint64_t>(1, mine_)));
  }

  // The next case, or none. Numbers are given out in order and each one that was given out is run to its end, so what
  // was run is always a prefix of the shard.
  std::optional<std::uint64_t> take() {
    const std::lock_guard lock(mutex_);
    if (stopped_ != Stopped::finished || taken_ == mine_) return std::nullopt;
    if (stop_requested)
      stopped_ = Stopped::interrupted;
    else if (result_.failed >= options_.max_failed)
      stopped_ = Stopped::failures;
    else if (options_.time_seconds > 0 && seconds_since(start_) >= options_.time_seconds)
      stopped_ = Stopped::time;
    if (stopped_ != Stopped::finished) return std::nullopt;
    return options_.shard_index + options_.shard_count * taken_++;
  }

  void work() {
    omp_set_num_threads(1);  // of this thread: the threads already fill the machine
    set_in_flight_kernel(options_.kernel);
    try {
      const std::unique_ptr<Kernel> kernel = make_kernel_();
      ForwardBuffers buffers;
      Census census;
      while (const std::optional<std::uint64_t> k = take()) {
        const Case c = generate_case(options_.seed, *k, options_.budget);
        census.add(c);
        judge_case(*kernel, buffers, *k, c);
      }
      const std::lock_guard lock(mutex_);
      result_.census.merge(census);
    } catch (...) {  // ours, not the kernel's: judge() keeps those
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      stopped_ = Stopped::interrupted;
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  void judge_case(Kernel& kernel, ForwardBuffers& buffers, std::uint64_t k, const Case& c) {
    if (kernel.unsupported(c)) {
      const std::lock_guard lock(mutex_);
      ++result_.cases, ++result_.unsupported;
      return;
    }
    Trial trial(kernel, buffers, c);
    std::vector<std::pair<const Property*, Verdict>> failed;
    const std::vector<const Property*> chosen = properties_for(options_.seed, k, c);
    for (const Property* property : chosen)
      if (Verdict verdict = judge(*property, trial); verdict.status != Status::passed)
        failed.emplace_back(property, std::move(verdict));
    const std::lock_guard lock(mutex_);
    ++result_.cases;
    ++(failed.empty() ? result_.passed : result_.failed);
    for (const Property* property : chosen) ++result_.judged[std::string(property->name)];
    for (auto& [property, verdict] : failed) record(k, c, *property, std::move(verdict));
  }

  void record(std::uint64_t k, const Case& c, const Property& property, Verdict verdict) {
    Kind& kind = kinds_[{std::string(property.name), verdict.status}];
    ++kind.seen;
    if (k >= kind.k) return;
    kind.property = &property;
    kind.k = k;
    kind.found = c;
    kind.verdict = std::move(verdict);
  }

  // Until all threads are through: progress, and an end to a kernel that hangs.
  void wait(Progress& progress) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return running_ == 0; })) {
      progress.show(seconds_since(start_), result_.cases, result_.failed);
      if (options_.hang_seconds <= 0) continue;
      if (const auto line = in_flight_longer_than(options_.hang_seconds)) {
        fmt::print(stderr, "\nattest: the kernel hangs for {:.0f} s; this repeats it:\n  {}\n", options_.hang_seconds,
                   *line);
        ::_exit(4);  // the thread that hangs cannot be ended apart
      }
    }
  }

  // In a thread of its own, so that a kernel that hangs on a smaller case is seen too.
  void shrink_kinds() {
    set_in_flight_kernel(options_.kernel);
    try {
      shrink_each(ordered_kinds());
    } catch (...) {
      error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  // By the first case; of one case in the order of properties().
  std::vector<const Kind*> ordered_kinds() const {
    std::vector<const Kind*> order;
    if (error_) return order;
    for (const auto& [name, kind] : kinds_) order.push_back(&kind);
    std::sort(order.begin(), order.end(),
              [](const Kind* a, const Kind* b) { return std::tie(a->k, a->property) < std::tie(b->k, b->property); });
    if (order.size() > static_cast<std::size_t>(options_.max_failures))
      order.resize(static_cast<std::size_t>(options_.max_failures));
    return order;
  }

  void shrink_each(const std::vector<const Kind*>& order) {
    if (order.empty()) return;
    const std::unique_ptr<Kernel> kernel = make_kernel_();
    ForwardBuffers buffers;
    const Clock::time_point start = Clock::now();
    for (const Kind* kind : order) {
      ShrinkLimits limits = options_.shrink;
      limits.max_seconds = std::min(limits.max_seconds, options_.max_shrink_seconds - seconds_since(start));
      if (stop_requested) limits.max_runs = 0;  // the user waits: list what was found as it is
      const Shrunk shrunk = shrink(*kernel, buffers, *kind->property, kind->found, kind->verdict, limits);
      Failure failure;
      failure.property = kind->property->name;
      failure.k = kind->k;
      failure.found = kind->found;
      failure.minimal = shrunk.minimal;
      failure.verdict = shrunk.verdict;
      failure.seen = kind->seen;
      failure.shrink_runs = shrunk.runs;
      failure.repro = repro_line(options_.kernel, kind->property->name, shrunk.minimal);
      result_.failures.push_back(std::move(failure));
    }
  }

  const CampaignOptions& options_;
  const KernelFactory& make_kernel_;
  const std::uint64_t mine_;
  const Clock::time_point start_ = Clock::now();

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  int running_ = 0;
  std::uint64_t taken_ = 0;
  Stopped stopped_ = Stopped::finished;
  std::exception_ptr error_;
  std::map<std::pair<std::string, Status>, Kind> kinds_;
  CampaignResult result_;
};

}  // namespace

void CampaignOptions::validate() const {
  if (cases == 0) throw InvalidInput("cases", "0", "is below 1");
  if (!(time_seconds >= 0 && time_seconds <= 1e7))
    throw InvalidInput("time", fmt::format("{} s", time_seconds), "is outside 0 to 10^7 s");
  if (shard_count == 0 || shard_index >= shard_count)
    throw InvalidInput("shard", fmt::format("{}/{}", shard_index, shard_count), "is not I/N with 0 <= I < N");
  if (threads < 0 || threads > 1024) throw InvalidInput("threads", fmt::format("{}", threads), "is outside 0 to 1024");
  if (max_failed == 0) throw InvalidInput("max-failed", "0", "is below 1");
}

std::string_view to_string(Stopped stopped) {
  switch (stopped) {
    case Stopped::finished:
      return "finished";
    case Stopped::time:
      return "time";
    case Stopped::failures:
      return "failures";
    case Stopped::interrupted:
      return "interrupted";
  }
  return "?";
}

CampaignResult run_campaign(const KernelFactory& make_kernel, const CampaignOptions& options) {
  options.validate();
  return Run(make_kernel, options).run();
}

void request_stop() noexcept { stop_requested = true; }

StopOnSignals::StopOnSignals() {
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, stop_on_signal);
}
StopOnSignals::~StopOnSignals() {
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
}

}  // namespace attest
