// Puts kernels that are wrong on purpose to campaigns: whether the suite can go red.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attest/cpu/mutants.h"
#include "attest/fuzz/campaign.h"

namespace attest {

struct MutantOptions {
  std::string only = "*";  // a glob over ids
  std::uint64_t seed = 0;
  std::uint64_t cases = 20'000;  // a mutant that passes these survives
  double time_seconds = 60;      // so does one that outlives this
  int threads = 0;
  bool progress = false;
  std::optional<WorkerProgram> program;  // whose workers make "mutant:ID": a mutant may crash or hang. None: runs here
  double hang_seconds = 5;               // in a worker

  void validate() const;
};

/// How one mutant fared.
struct MutantResult {
  Mutant mutant;
  bool caught = false;
  std::uint64_t cases = 0;         // up to and with the one that caught it
  double seconds = 0;              // to that case
  std::vector<std::string> also;   // the other properties that failed on that case
  std::optional<Failure> failure;  // by the first property that failed on it, made small
};

struct MutantResults {
  std::vector<MutantResult> mutants;  // those that were tried to the end
  bool interrupted = false;           // by request_stop(): the others were not
};

/// Throws InvalidInput if no id matches.
MutantResults run_mutants(const std::vector<Mutant>& mutants, const MutantOptions& options);

nlohmann::ordered_json to_json(const MutantOptions& options, const MutantResults& results);
std::string to_text(const MutantResults& results);

}  // namespace attest
