// The nightly run: everything that attest can check on this machine, within a budget of time.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attest/fuzz/worker.h"
#include "attest/nightly/night.h"

namespace attest {

/// In the order in which they run.
inline constexpr std::string_view nightly_steps[] = {"doctor", "corpus", "tests", "time", "bytes", "sanitizer", "fuzz"};

/// What is made of the history, in its folder, and where the failures of before are.
inline constexpr const char *night_page = "index.html", *night_junit = "junit.xml", *night_json = "nightly.json";
inline constexpr const char* night_corpus = "corpus";
/// Throws EnvironmentError where one of the three could not be written into the folder.
void expect_reports_writable(const std::string& folder);

struct NightlyOptions {
  std::string out;                    // the folder of the history, the corpus and the reports
  double seconds = 1800;              // of all steps together, over every resumption
  std::optional<std::uint64_t> seed;  // of the fuzz campaign; none: the date as a number, 20260131
  std::uint64_t shard_index = 0, shard_count = 1;
  std::vector<std::string> kernels;  // words of --kernel; none: every one that runs here
  std::vector<std::string> steps;    // none: all
  std::string tests;                 // where the GoogleTest programs are; empty: beside this program
  int threads = 0;                   // as in CampaignOptions
  double hang_seconds = 20;          // likewise
  bool new_baseline = false;         // tonight's figures are compared with nothing, and later ones with them
  std::string version;               // of attest, for the record

  /// Throws InvalidInput naming out, time, shard, threads, timeout, steps or tests.
  void validate() const;
};

/// Runs the night, or what is left of the last one if it was interrupted and has the given seed, or began within the
/// last day where none is given, and returns it as it stands in the
/// history; `finished` is empty where a signal ended it. Each part is in the history as soon as it is done, so a killed
/// night loses at most the step or the block of cases that it was in, which is run again. Progress goes to stderr.
/// Throws InvalidInput for options, a history or a corpus that the user must correct, and EnvironmentError where what
/// the folder is to hold cannot be written or another nightly runs in it, all before anything is run.
Night run_nightly(const NightlyOptions& options, const WorkerProgram& program);

}  // namespace attest
