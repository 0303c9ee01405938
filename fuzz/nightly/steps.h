// The steps of a night, each a call that gives what is to be recorded of it.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attest/nightly/history.h"
#include "attest/nightly/nightly.h"
#include "process.h"

namespace attest {

/// What this machine has.
struct Facts {
  Machine machine;
  std::string no_gpu;                                            // why nothing can run on a GPU; empty: something can
  std::string gpu_busy;                                          // by whom; empty: by nobody that we can see
  std::vector<std::string> kernels;                              // that can run here
  std::vector<std::pair<std::string, std::string>> unavailable;  // kernels that cannot, and why
};

Facts look_around();

/// What every step is given.
struct StepWork {
  const NightlyOptions& options;
  const Facts& facts;
  const History& history;
  const Night& night;  // as far as it is recorded
  double seconds;      // that the step may take
};

/// GoogleTest's programs that `tests` runs, in this order: those to which CMake gives the label `gpu`. None where the
/// tests were not configured.
std::vector<std::string> gpu_test_programs();

Part doctor_step(const StepWork& work);
Part tests_step(const StepWork& work);
Part time_step(const StepWork& work);
Part bytes_step(const StepWork& work);
Part sanitizer_step(const StepWork& work);
/// Adds what GoogleTest's program `program`, at `path`, said and how it ended: a check for each of its tests, and one
/// for the program, which has passed only where it ended by itself, in no test, with status 0 or a failure it named,
/// and is skipped where all of its tests were.
void read_tests_output(const std::string& program, const std::string& path, const Ended& ended, Part& part);
/// Adds what tools/sanitize.sh said of the kernels and how it ended. Nothing has passed where it ended with a status
/// other than 0 and 1, or with 1 and no error named: no case came out clean.
void read_sanitizer_output(const std::vector<std::string>& kernels, const Ended& ended, Part& part);
/// What the end of an `attest bench` or `attest measure` that gave no figure says of the kernel: crashed by a signal or
/// exit 4, wrong by exit 1; skipped by all else, time included, which is not the kernel's.
CheckState state_without_figure(const Ended& ended);
/// The corpus of failures, put to every kernel.
Part corpus_step(const StepWork& work, const WorkerProgram& program);
/// How long the next block of a kernel's campaign is: a twentieth of the night, 1 to 60 s, which is what a killed night
/// loses of it, but not less than its blocks took so far for each that covered a case: starting a GPU's workers takes
/// seconds, and a block that ends before then covers nothing.
double block_seconds(const StepWork& work, const std::string& kernel);
/// A block of the campaign's cases on the kernel that has had the least time; none where no kernel takes more.
std::optional<Part> fuzz_block(const StepWork& work, const WorkerProgram& program);

/// Of these words of --kernel those whose records say that they run on a GPU: what the counters and compute-sanitizer
/// can look at. One that cannot be made, or crashes while it is, is none.
std::vector<std::string> gpu_kernels(const std::vector<std::string>& kernels);

/// What a part of this name says where it cannot be: a step with a note, and a skipped check under the same name.
Part skipped(const std::string& name, const std::string& why);
/// How many seconds `act` takes, added to the part that it gives.
Part timed(const std::function<Part()>& act);

/// Runs `attest ARGUMENTS --json FILE` and reads that file: null where the program left none, and `ended` says why.
nlohmann::json attest_json(std::vector<std::string> arguments, double seconds, Ended& ended);

}  // namespace attest
