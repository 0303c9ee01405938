// Puts a kernel to many cases.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attest/fuzz/census.h"
#include "attest/fuzz/generators.h"
#include "attest/fuzz/shrink.h"

namespace attest {

using KernelFactory = std::function<std::unique_ptr<Kernel>()>;

struct CampaignOptions {
  std::string kernel = "cpu";  // the word in repro lines
  std::uint64_t seed = 0;
  std::uint64_t cases = 10'000;                    // of the whole campaign, all shards together
  double time_seconds = 0;                         // start no case after this; 0: no limit
  std::uint64_t shard_index = 0, shard_count = 1;  // this shard runs k = shard_index mod shard_count
  int threads = 0;                                 // 0: one a hardware thread
  std::uint64_t max_failed = 50;  // stop after this many failing cases: a wholly wrong kernel is soon told
  int max_failures = 10;          // different (property, status) that are shrunk and listed
  double hang_seconds = 60;       // a property that takes longer ends the process with status 4; 0: never
  bool progress = false;          // a line to stderr each second (every 5 s where that is no terminal)
  bool distribution = true;       // to_text() ends with what the cases were like
  Budget budget;
  ShrinkLimits shrink;
  double max_shrink_seconds = 20;  // over all of them; those it leaves out are listed as they were found

  /// Throws InvalidInput naming cases, time, shard, threads or max-failed.
  void validate() const;
};

/// One way of failing: the first case of it, made small.
struct Failure {
  std::string property;
  std::uint64_t k = 0;  // the first case that failed so
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
  std::uint64_t first_uncovered_k = 0;                               // every k of the shard below this was run
  double seconds = 0;                                                // without shrinking
  Stopped stopped = Stopped::finished;
  int threads = 1;
  std::map<std::string, std::uint64_t> judged;  // how often each property was run
  std::vector<Failure> failures;                // by the first case's k
  Census census;
};

/// Runs in this process on `threads` threads with a kernel each. Stops on request_stop(). A crash of the kernel ends
/// the process (install_crash_handlers()).
CampaignResult run_campaign(const KernelFactory& make_kernel, const CampaignOptions& options);

/// Asks the campaign that runs to stop after the cases in flight. Async-signal-safe.
void request_stop() noexcept;

/// While it lives, SIGINT and SIGTERM are request_stop(); a second one ends the process.
class StopOnSignals {
 public:
  StopOnSignals();
  ~StopOnSignals();
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;
};

/// "attest/fuzz/1".
nlohmann::ordered_json to_json(const CampaignOptions& options, const CampaignResult& result);
/// For a person: the counts, then each failure with its line to paste.
std::string to_text(const CampaignOptions& options, const CampaignResult& result);
/// One line: what is wrong where.
std::string describe(const Verdict& verdict);

}  // namespace attest
