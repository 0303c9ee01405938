// What calls of a kernel take.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attest/fuzz/worker.h"
#include "attest/problem/case.h"
#include "attest/problem/exit_code.h"

namespace attest {

struct BenchOptions {
  std::string kernel;       // the word in repro lines
  std::vector<Case> cases;  // empty: the panel that suits the kernel's clock
  int repeats = 9;
  double hang_seconds = 60;  // a run of the kernel that takes longer is ended

  /// Throws InvalidInput naming repeats.
  void validate() const;
};

struct BenchRow {
  std::string name;  // of a panel's case; "case" for another
  Case the_case;
  std::vector<double> seconds;  // of a call; empty where it is refused
  std::string refused;          // why
  std::string failed;           // how the kernel crashed, hung or threw instead
  std::string repro;            // "attest bench --kernel K CASE"
};

struct BenchResult {
  bool on_device = false;      // the kernel runs on a GPU, whose clock times it; else CPU seconds of its process
  std::vector<BenchRow> rows;  // a failed one is the last

  /// 4 where a row failed; 77 where none was timed.
  ExitCode exit_code() const;
};

/// Times the kernel in a worker. Throws what making it there throws, and InvalidInput for options.
BenchResult run_bench(const WorkerProgram& program, const BenchOptions& options);

nlohmann::ordered_json to_json(const BenchOptions& options, const BenchResult& result);
/// A table: median, fastest and slowest of the repeats.
std::string to_text(const BenchOptions& options, const BenchResult& result);

}  // namespace attest
