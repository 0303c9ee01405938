// Puts a kernel to many cases.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attest/fuzz/census.h"
#include "attest/fuzz/coverage.h"
#include "attest/fuzz/generators.h"
#include "attest/fuzz/interrupt.h"
#include "attest/fuzz/shrink.h"
#include "attest/fuzz/tally.h"
#include "attest/fuzz/worker.h"

namespace attest {

using KernelFactory = std::function<std::unique_ptr<Kernel>()>;

/// Of a campaign, and of the number of its shards, so that no number made of them wraps.
inline constexpr std::uint64_t most_cases = 1'000'000'000;

struct CampaignOptions {
  std::string kernel = "cpu";  // the word in repro lines
  std::uint64_t seed = 0;
  std::uint64_t cases = 10'000;                    // of the whole campaign, all shards together
  std::uint64_t first_case = 0;                    // begin here: what is below it was run before
  double time_seconds = 0;                         // start no case and no replay after this; 0: no limit
  std::uint64_t shard_index = 0, shard_count = 1;  // this shard runs k = shard_index mod shard_count
  int threads = 0;                                 // or workers; 0: one a hardware thread
  std::string corpus;                              // a folder: replayed first, and failures join it; empty: none
  bool replays = true;                             // false: failures join the corpus, and nothing of it is run
  std::uint64_t max_failed = 50;  // stop after this many failing cases: a wholly wrong kernel is soon told
  std::uint64_t max_hung = 5;     // or after this many that hung: each costs its limit of time
  int max_failures = 10;          // different (property, status) that are shrunk and listed
  double hang_seconds = 20;       // a run of the kernel that takes longer hangs, in a worker; 0: never
  bool progress = false;          // a line to stderr each second (every 5 s where that is no terminal)
  bool distribution = true;       // to_text() ends with what the cases were like
  Budget budget;
  ShrinkLimits shrink;
  double max_shrink_seconds = 20;  // over all of them; those it leaves out are listed as they were found

  /// Throws InvalidInput naming cases, first_case, time, shard, threads, timeout or max-failed.
  void validate() const;
  /// The n-th case that this shard runs, from 0.
  std::uint64_t case_number(std::uint64_t n) const;
};

/// One way of failing: the first case of it, made small.
struct Failure {
  std::string property;
  std::string corpus_file;  // the first case that failed so was this file's; empty: case k of the campaign
  std::uint64_t k = 0;
  Case found, minimal;
  Verdict verdict;         // of the minimal case
  std::uint64_t seen = 0;  // failing cases of this property and status
  int shrink_runs = 0;
  std::string repro;
};

enum class Stopped : std::uint8_t { finished, time, failures, interrupted };
std::string_view to_string(Stopped stopped);

struct CampaignResult {
  std::uint64_t cases = 0, passed = 0, failed = 0, unsupported = 0;  // of this shard
  std::vector<Status> outcomes;         // of this shard's cases from the first on, up to the first that was not run
  std::uint64_t first_uncovered_k = 0;  // every k of the shard from first_case up to this was run
  double seconds = 0;                   // without shrinking
  Stopped stopped = Stopped::finished;
  int threads = 1;
  Tally statuses;                 // of the cases: a crash or a hang, else that of the first property that failed
  TallyByProperty by_property;    // of every judgement, replays among them
  std::vector<Failure> failures;  // replays first, then by the first case's k
  Census census;
  Coverage coverage;

  struct Replays {
    std::uint64_t files = 0;  // of this shard
    std::uint64_t replayed = 0, failed = 0, unsupported = 0;
    std::uint64_t added = 0;  // files
    std::string error;        // what kept a failure from joining the corpus
    Tally statuses;
  } corpus;

  /// Cases and replays that the kernel took. Where there are none nothing was verified.
  std::uint64_t judged() const { return cases + corpus.replayed - unsupported - corpus.unsupported; }
};

/// Runs in this process on `threads` threads with a kernel each. Stops on request_stop(). A kernel that crashes or
/// hangs takes this process along; options.hang_seconds is not looked at.
CampaignResult run_campaign(const KernelFactory& make_kernel, const CampaignOptions& options);

/// Runs in `threads` worker processes, which make options.kernel: a crash or a hang is a finding, the worker is started
/// again, and the campaign goes on. The result does not depend on how many there are, as far as no limit strikes.
/// Throws InvalidInput for a kernel that the program refuses and KernelCrashed if making it brings the worker down.
CampaignResult run_campaign(const WorkerProgram& program, const CampaignOptions& options);

/// "attest/fuzz/1".
nlohmann::ordered_json to_json(const CampaignOptions& options, const CampaignResult& result);
/// For a person: the counts, then each failure with its line to paste.
std::string to_text(const CampaignOptions& options, const CampaignResult& result);
/// One line: what is wrong where.
std::string describe(const Verdict& verdict);
/// "attest check --kernel K --property P <the case's flags>".
std::string repro_line(std::string_view kernel, std::string_view property, const Case& c);

}  // namespace attest
