// A night: what ran, what came of it, and what was measured.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attest/problem/exit_code.h"
#include "attest/reference/compare.h"

namespace attest {

/// What came of a check, from harmless to severe.
enum class CheckState : std::uint8_t { passed, skipped, regressed, wrong, crashed };
std::string_view to_string(CheckState state);
/// Throws InvalidInput for a word that is none.
CheckState check_state_named(std::string_view field, std::string_view word);
inline bool is_red(CheckState state) { return state >= CheckState::regressed; }
/// 4 for crashed, 1 for wrong, 5 for regressed, else 0.
ExitCode exit_code_of(CheckState worst);

/// One judgement, under a name that is the same every night: "fuzz/sm80/gqa", "time/sm80/decode-8k".
struct Check {
  std::string name;
  CheckState state = CheckState::passed;
  std::string detail;       // one line for a person; of a skipped one why
  std::string repro;        // a line to paste, where it is red
  bool of_a_kernel = true;  // else of the machine, or of a prediction beside what it was before

  friend bool operator==(const Check&, const Check&) = default;
};

/// The units of times: by a GPU's clock, and of the CPU in the kernel's process.
inline constexpr const char *device_seconds_unit = "s", *cpu_seconds_unit = "CPU s";

/// A figure that is compared from night to night.
struct Series {
  std::string name;  // of the check that judges it
  std::string unit;  // "B", or seconds of one of two clocks; figures of different units are never compared
  std::vector<double> values;
  bool begins = false;  // nothing before this night is compared with what comes after

  friend bool operator==(const Series&, const Series&) = default;
};

/// Cases of the night's campaign that a kernel was put to: this shard's from first_case on.
struct Covered {
  std::string kernel;
  std::uint64_t first_case = 0;
  std::vector<Status> outcomes;

  friend bool operator==(const Covered&, const Covered&) = default;
};

struct Step {
  std::string name;
  double seconds = 0;
  std::string note;  // one line: what it did, or why it did not

  friend bool operator==(const Step&, const Step&) = default;
};

/// A figure is compared only with those of the same device, driver and toolkit.
struct Machine {
  std::string host;
  std::string device;   // of the first GPU, or of the CPU where there is none
  std::string driver;   // empty without a GPU
  std::string toolkit;  // CUDA's runtime; the compiler in a build without

  friend bool operator==(const Machine&, const Machine&) = default;
};

/// Which campaign a night is a part of.
struct Campaign {
  std::uint64_t seed = 0, generator_version = 0, shard_index = 0, shard_count = 1;

  friend bool operator==(const Campaign&, const Campaign&) = default;
};

struct Night {
  std::int64_t id = 0;            // of the history
  std::string started, finished;  // UTC, "2026-01-31T23:59:59Z"; finished is empty until it is
  std::string version;            // of attest
  Machine machine;
  Campaign campaign;
  std::vector<std::string> kernels;
  std::vector<Step> steps;
  std::vector<Check> checks;
  std::vector<Series> series;
  std::vector<Covered> covered;

  /// Whether some check that was run was of a kernel.
  bool checked_a_kernel() const;
  /// 4 before 1 before 5: the worst of the checks; 77 where none is red and no kernel was checked.
  ExitCode exit_code() const;
};

}  // namespace attest
