#include "attest/fuzz/campaign.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "attest/fuzz/progress.h"
#include "attest/problem/error.h"
#include "findings.h"
#include "judge.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

using JudgeFactory = std::function<std::unique_ptr<Judge>()>;

// A crash or a hang, else the first property that failed.
Status status_of(const Outcome& outcome) {
  if (outcome.unsupported) return Status::unsupported;
  if (outcome.failed.empty()) return Status::passed;
  const Status last = outcome.failed.back().second.status;
  return last == Status::crashed || last == Status::hung ? last : outcome.failed.front().second.status;
}

// What the threads share. Each has a judge of its own.
class Run {
 public:
  Run(JudgeFactory make_judge, const CampaignOptions& options)
      : options_(options),
        make_judge_(std::move(make_judge)),
        mine_(options.cases > options.case_number(0)
                  ? (options.cases - options.case_number(0) + options.shard_count - 1) / options.shard_count
                  : 0),
        corpus_(options.corpus.empty() ? std::nullopt : std::optional<Corpus>(std::in_place, options.corpus)),
        findings_(options, corpus_ ? &*corpus_ : nullptr) {
    if (!corpus_ || !options.replays) return;
    for (const Corpus::File& file : corpus_->files())
      if (corpus_shard(file.name, options.shard_count) == options.shard_index) replays_.push_back(&file);
  }

  CampaignResult run() {
    const int threads = thread_count();
    {
      Progress progress(options_.progress, mine_ + replays_.size(), options_.time_seconds);
      std::vector<std::jthread> workers;
      running_ = threads;
      workers.reserve(static_cast<std::size_t>(threads));
      for (int i = 0; i < threads; ++i) workers.emplace_back([this] { work(); });
      wait(progress);
    }
    if (error_) std::rethrow_exception(error_);
    while (!pending_replays_.empty()) count_first_pending_replay();
    while (!pending_.empty()) count_first_pending();  // what was run beyond a case that was given up
    result_.seconds = seconds_since(start_);
    if (stop_requested() && stopped_ == Stopped::finished && !open_.empty()) stopped_ = Stopped::interrupted;
    result_.failures = list_failures();
    if (stop_requested() && stopped_ == Stopped::interrupted) clear_stop();
    result_.threads = threads;
    result_.first_uncovered_k = options_.case_number(result_.outcomes.size());
    result_.stopped = stopped_;
    result_.corpus.files = replays_.size();
    result_.corpus.added = findings_.corpus_added();
    result_.corpus.error = findings_.corpus_error();
    return std::move(result_);
  }

 private:
  int thread_count() const {
    const auto wanted = options_.threads > 0 ? static_cast<std::uint64_t>(options_.threads)
                                             : std::max(1u, std::thread::hardware_concurrency());
    return static_cast<int>(std::min(wanted, std::max<std::uint64_t>({1, mine_, replays_.size()})));
  }

  // In a thread: replays, while there are any, then cases.
  void work() {
    omp_set_num_threads(1);  // of this thread: the threads already fill the machine
    try {
      const std::unique_ptr<Judge> judge = make_judge_();
      while (const std::optional<std::size_t> at = take_replay()) replay(*judge, *at);
      wait_for_replays();
      judge->run([this] { return take(); }, [this](Outcome outcome) { record(std::move(outcome)); });
    } catch (...) {  // ours, not the kernel's: judges keep those
      fail(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  std::vector<Failure> list_failures() {
    if (findings_.empty()) return {};
    std::unique_ptr<Judge> judge;
    try {
      judge = make_judge_();
    } catch (const KernelCrashed&) {  // no kernel to make small cases with
    }
    return findings_.list_failures(judge.get());
  }

  // A kernel that is a finding and then cannot even be made again ends the campaign, and keeps what was found.
  void fail(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    bool keep = false;
    try {
      std::rethrow_exception(error);
    } catch (const KernelCrashed&) {
      keep = !findings_.empty();
    } catch (const EnvironmentError&) {
      keep = !findings_.empty();
    } catch (...) {
    }
    if (!keep && !error_) error_ = error;
    stopped_ = keep ? Stopped::failures : Stopped::interrupted;
    changed_.notify_all();
  }

  std::optional<std::size_t> take_replay() {
    const std::lock_guard lock(mutex_);
    if (stopped_ != Stopped::finished || next_replay_ == replays_.size()) return std::nullopt;
    look_for_end();
    if (stopped_ != Stopped::finished) return std::nullopt;
    open_replays_.insert(next_replay_);
    return next_replay_++;
  }

  void replay(Judge& judge, std::size_t at) {
    const Corpus::File& file = *replays_[at];
    const Property& property = property_named(file.entry.property);
    std::optional<Verdict> verdict;
    if (property.applies(file.entry.the_case))
      verdict = judge.judge(property, file.entry.the_case, options_.hang_seconds);
    const std::lock_guard lock(mutex_);
    open_replays_.erase(at);
    if (verdict || !stop_requested())
      pending_replays_.emplace(at, std::move(verdict));
    else
      stopped_ = Stopped::interrupted;
    while (!pending_replays_.empty() &&
           (open_replays_.empty() || pending_replays_.begin()->first < *open_replays_.begin()))
      count_first_pending_replay();
    changed_.notify_all();
  }

  // Like cases: in the order of the files, and what was run beyond the limit of failures is dropped.
  void count_first_pending_replay() {
    auto pending = pending_replays_.extract(pending_replays_.begin());
    if (full()) return;
    const Corpus::File& file = *replays_[pending.key()];
    std::optional<Verdict>& verdict = pending.mapped();
    const Status status = verdict ? verdict->status : Status::unsupported;
    ++result_.corpus.replayed;
    result_.corpus.statuses.add(status);
    result_.corpus.failed = result_.corpus.statuses.failed();
    result_.corpus.unsupported = result_.corpus.statuses[Status::unsupported];
    if (full() && (mine_ > 0 || result_.corpus.replayed < replays_.size())) stopped_ = Stopped::failures;
    if (!verdict) return;
    const Property& property = property_named(file.entry.property);
    result_.by_property[std::string(property.name)].add(status);
    if (status != Status::passed)
      findings_.record({false, pending.key(), file.name}, file.entry.the_case, property, std::move(*verdict));
  }

  // No case before the last replay: else chance would say which failures come before the limit.
  void wait_for_replays() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return stopped_ != Stopped::finished || (next_replay_ == replays_.size() && open_replays_.empty());
    });
  }

  // The next case, or none. Numbers are given out in order and each one that was given out is run to its end, unless
  // the user does not wait for it.
  std::optional<std::uint64_t> take() {
    const std::lock_guard lock(mutex_);
    if (stopped_ != Stopped::finished || taken_ == mine_) return std::nullopt;
    look_for_end();
    if (stopped_ != Stopped::finished) return std::nullopt;
    const std::uint64_t k = options_.case_number(taken_++);
    open_.insert(k);
    return k;
  }

  void look_for_end() {
    if (stop_requested())
      stopped_ = Stopped::interrupted;
    else if (full())
      stopped_ = Stopped::failures;
    else if (options_.time_seconds > 0 && seconds_since(start_) >= options_.time_seconds)
      stopped_ = Stopped::time;
  }

  std::uint64_t failed() const { return result_.failed + result_.corpus.failed; }
  bool full() const {
    const std::uint64_t hung = result_.statuses[Status::hung] + result_.corpus.statuses[Status::hung];
    return failed() >= options_.max_failed || hung >= options_.max_hung;
  }

  // Outcomes count in the order of k, whoever is first, so that a limit of failures cuts the same campaign at the same
  // case whatever the number of threads; what was run beyond that case is dropped.
  void record(Outcome outcome) {
    const std::lock_guard lock(mutex_);
    open_.erase(outcome.k);
    const std::uint64_t k = outcome.k;
    pending_.emplace(k, std::move(outcome));
    while (!pending_.empty() && (open_.empty() || pending_.begin()->first < *open_.begin())) count_first_pending();
  }

  void count_first_pending() {
    if (!full()) {
      count(pending_.begin()->second);
      if (full() && result_.cases < mine_) stopped_ = Stopped::failures;
    }
    pending_.erase(pending_.begin());
  }

  void count(Outcome& outcome) {
    const Status status = status_of(outcome);
    result_.census.add(outcome.the_case);
    result_.coverage.add(outcome.the_case, outcome.judged);
    result_.statuses.add(status);
    if (outcome.k == options_.case_number(result_.outcomes.size())) result_.outcomes.push_back(status);
    ++result_.cases;
    result_.passed = result_.statuses[Status::passed];
    result_.unsupported = result_.statuses[Status::unsupported];
    result_.failed = result_.statuses.failed();
    auto failure = outcome.failed.begin();
    for (const Property* property : outcome.judged) {
      const bool failed = failure != outcome.failed.end() && failure->first == property;
      result_.by_property[std::string(property->name)].add(failed ? failure->second.status : Status::passed);
      if (failed) ++failure;
    }
    if (outcome.failed.empty()) return;
    findings_.join_corpus(outcome.the_case, *outcome.failed.front().first, outcome.failed.front().second.status);
    for (auto& [property, verdict] : outcome.failed)
      findings_.record({true, outcome.k, ""}, outcome.the_case, *property, std::move(verdict));
  }

  // Until all threads are through.
  void wait(Progress& progress) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return running_ == 0; }))
      progress.show(seconds_since(start_), result_.corpus.replayed + result_.cases, failed());
  }

  const CampaignOptions& options_;
  const JudgeFactory make_judge_;
  const std::uint64_t mine_;
  const std::optional<Corpus> corpus_;
  std::vector<const Corpus::File*> replays_;
  const Clock::time_point start_ = Clock::now();

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  int running_ = 0;
  std::size_t next_replay_ = 0;
  std::set<std::size_t> open_replays_;                             // given out and not done
  std::map<std::size_t, std::optional<Verdict>> pending_replays_;  // done and not counted
  std::uint64_t taken_ = 0;
  std::set<std::uint64_t> open_;              // given out and not done
  std::map<std::uint64_t, Outcome> pending_;  // done and not counted
  Stopped stopped_ = Stopped::finished;
  std::exception_ptr error_;
  Findings findings_;
  CampaignResult result_;
};

}  // namespace

void CampaignOptions::validate() const {
  if (cases == 0) throw InvalidInput("cases", "0", "is below 1");
  if (first_case > cases)
    throw InvalidInput("first_case", fmt::format("{}", first_case), fmt::format("is above the {} cases", cases));
  if (!(time_seconds >= 0 && time_seconds <= 1e7))
    throw InvalidInput("time", fmt::format("{} s", time_seconds), "is outside 0 to 10^7 s");
  if (shard_count > most_cases || shard_index >= shard_count)
    throw InvalidInput("shard", fmt::format("{}/{}", shard_index, shard_count),
                       fmt::format("is not I/N with 0 <= I < N <= {}", most_cases));
  if (threads < 0 || threads > 1024) throw InvalidInput("threads", fmt::format("{}", threads), "is outside 0 to 1024");
  if (!(hang_seconds >= 0 && hang_seconds <= 1e7))
    throw InvalidInput("timeout", fmt::format("{} s", hang_seconds), "is outside 0 to 10^7 s");
  if (max_failed == 0) throw InvalidInput("max-failed", "0", "is below 1");
}

std::uint64_t CampaignOptions::case_number(std::uint64_t n) const {
  const std::uint64_t to_mine = (shard_index + shard_count - first_case % shard_count) % shard_count;
  return first_case + to_mine + shard_count * n;
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
  return Run([&] { return make_local_judge(make_kernel, options); }, options).run();
}

CampaignResult run_campaign(const WorkerProgram& program, const CampaignOptions& options) {
  options.validate();
  return Run([&] { return make_worker_judge(program, options); }, options).run();
}

}  // namespace attest
