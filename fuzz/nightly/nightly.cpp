#include "attest/nightly/nightly.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/corpus.h"
#include "attest/fuzz/generators.h"
#include "attest/fuzz/interrupt.h"
#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "steps.h"

namespace attest {
namespace {

// One nightly a folder. Gone with the process, however it ends.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder)
      : file_(::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (file_ < 0)
      throw EnvironmentError(fmt::format("'{}': cannot be written: {}", folder.string(), std::strerror(errno)));
    if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
    ::close(file_);
    throw EnvironmentError(fmt::format("'{}': another attest nightly runs in this folder", folder.string()));
  }
  ~FolderLock() { ::close(file_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

std::uint64_t date_as_number() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  ::gmtime_r(&now, &date);
  const int day = (date.tm_year + 1900) * 10'000 + (date.tm_mon + 1) * 100 + date.tm_mday;
  return static_cast<std::uint64_t>(day);
}

bool began_within_a_day(const Night& night) {
  std::tm began{};
  if (!::strptime(night.started.c_str(), "%Y-%m-%dT%H:%M:%SZ", &began)) return false;
  constexpr double day_seconds = 86'400;
  return std::difftime(std::time(nullptr), ::timegm(&began)) < day_seconds;
}

// What the options ask for is what this night was doing when it was interrupted.
bool can_resume(const Night& night, const NightlyOptions& options) {
  const Campaign& c = night.campaign;
  return night.finished.empty() && (options.seed ? *options.seed == c.seed : began_within_a_day(night)) &&
         c.generator_version == generator_version && c.shard_index == options.shard_index &&
         c.shard_count == options.shard_count && (options.kernels.empty() || options.kernels == night.kernels);
}

// Of id 0 where there is none. Every night is read, so that a damaged one is told of before time is spent.
Night newest_of(const History& history) {
  Night night;
  for (const std::int64_t id : history.ids()) night = history.load(id);
  return night;
}

class Run {
 public:
  Run(const NightlyOptions& options, const WorkerProgram& program)
      : options_(options),
        program_(program),
        history_(options.out),
        night_(newest_of(history_)),
        facts_(look_around()) {
    if (night_.id == 0 || !can_resume(night_, options_)) {
      begin();
      return;
    }
    say(fmt::format("goes on with the night of {}", night_.started));
    // Figures of one night are of one machine; cases are cases anywhere.
    moved_ = facts_.machine.device != night_.machine.device || facts_.machine.driver != night_.machine.driver ||
             facts_.machine.toolkit != night_.machine.toolkit;
  }

  Night run() {
    constexpr struct {
      std::string_view name;
      double share;  // of all the time, at most: the fuzzer gets what these leave, at least 35 %
      Part (*step)(const StepWork&);
    } steps[] = {{"doctor", 0.02, doctor_step}, {"corpus", 0.08, nullptr},   {"tests", 0.15, tests_step},
                 {"time", 0.15, time_step},     {"bytes", 0.10, bytes_step}, {"sanitizer", 0.15, sanitizer_step}};
    constexpr double least_seconds = 5;  // a process that opens a GPU takes some
    for (const auto& [name, share, step] : steps) {
      if (!wanted(name) || is_recorded(name) || stop_requested()) continue;
      const double seconds = std::min(std::max(share * options_.seconds, least_seconds), left());
      if (seconds <= 0) {
        record(skipped(std::string(name), "no time was left"));
        continue;
      }
      if (moved_ && name != "corpus") {
        record(skipped(std::string(name), fmt::format("the night began on {}", night_.machine.device)));
        continue;
      }
      const StepWork work{options_, facts_, history_, night_, seconds};
      say(fmt::format("{}, at most {:.0f} s", name, seconds));
      Part part = timed([&, act = step] { return act ? act(work) : corpus_step(work, program_); });
      if (!stop_requested()) record(part);  // else it runs again when the night goes on
    }
    if (wanted("fuzz")) fuzz();
    if (!stop_requested()) history_.finish(night_.id, utc_now());
    return history_.load(night_.id);
  }

 private:
  void begin() {
    night_ = {};
    night_.started = utc_now();
    night_.version = options_.version;
    night_.machine = facts_.machine;
    night_.campaign = {options_.seed.value_or(date_as_number()), generator_version, options_.shard_index,
                       options_.shard_count};
    night_.kernels = options_.kernels.empty() ? facts_.kernels : options_.kernels;
    night_.id = history_.begin(night_);
  }

  void fuzz() {
    constexpr double too_short = 0.2;  // to start workers for
    while (!stop_requested() && left() > too_short) {
      say(fmt::format("fuzz, {:.0f} s are left", left()));
      const std::optional<Part> part = fuzz_block({options_, facts_, history_, night_, left()}, program_);
      if (!part) break;
      record(*part);
    }
  }

  void record(const Part& part) {
    history_.record(night_.id, part);
    night_ = history_.load(night_.id);
  }

  double left() const {
    double spent = 0;
    for (const Step& step : night_.steps) spent += step.seconds;
    return options_.seconds - spent;
  }
  bool wanted(std::string_view name) const {
    return options_.steps.empty() ||
           std::find(options_.steps.begin(), options_.steps.end(), name) != options_.steps.end();
  }
  bool is_recorded(std::string_view name) const {
    return std::any_of(night_.steps.begin(), night_.steps.end(), [&](const Step& step) { return step.name == name; });
  }
  static void say(const std::string& what) {
    const std::string line = fmt::format("nightly: {}\n", what);
    std::fwrite(line.data(), 1, line.size(), stderr);
  }

  const NightlyOptions& options_;
  const WorkerProgram& program_;
  History history_;
  Night night_;
  const Facts facts_;
  bool moved_ = false;
};

}  // namespace

void NightlyOptions::validate() const {
  if (out.empty()) throw InvalidInput("out", "''", "is no folder");
  for (const std::string& step : steps) {
    if (std::find(std::begin(nightly_steps), std::end(nightly_steps), step) == std::end(nightly_steps))
      throw InvalidInput("steps", fmt::format("'{}'", step),
                         fmt::format("is none of {}", fmt::join(nightly_steps, ", ")));
    if (std::count(steps.begin(), steps.end(), step) > 1)
      throw InvalidInput("steps", fmt::format("'{}'", step), "was given twice; a step runs once");
  }
  std::error_code error;
  if (!tests.empty() && !std::filesystem::is_directory(tests, error))
    throw InvalidInput("tests", fmt::format("'{}'", tests), "is no folder");
  CampaignOptions campaign;
  campaign.time_seconds = seconds;
  campaign.shard_index = shard_index, campaign.shard_count = shard_count;
  campaign.threads = threads;
  campaign.hang_seconds = hang_seconds;
  campaign.validate();
}

void expect_reports_writable(const std::string& folder) {
  for (const char* const name : {night_page, night_junit, night_json})
    expect_writable(std::filesystem::path(folder) / name);
}

Night run_nightly(const NightlyOptions& options, const WorkerProgram& program) {
  options.validate();
  const StopOnSignals stop;
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error) throw EnvironmentError(fmt::format("'{}': cannot be made: {}", options.out, error.message()));
  const FolderLock lock(options.out);
  expect_reports_writable(options.out);
  const Corpus corpus(std::filesystem::path(options.out) / night_corpus);  // to be told of it now
  return Run(options, program).run();
}

}  // namespace attest
