// attest mutants: whether the suite can go red.
#include "attest/fuzz/commands.h"
#include "commands.h"
#include "output.h"

namespace attest::tools {
namespace {

ExitCode run(const Flags& flags) {
  const Results results(flags);
  MutantOptions options;
  if (const auto only = flags.text("--only")) options.only = *only;
  if (const auto seed = flags.unsigned_integer("--seed")) options.seed = *seed;
  if (const auto cases = flags.integer("--cases", 1)) options.cases = static_cast<std::uint64_t>(*cases);
  if (const auto time = flags.seconds("--time")) options.time_seconds = *time;
  if (const auto threads = flags.integer("--threads", 1, 1024)) options.threads = static_cast<int>(*threads);
  options.progress = true;
  options.program.emplace();
  const CommandResult result = attest::mutants_command(options);
  results.finish("mutants", *result.json, result.text);
  return result.exit_code;
}

}  // namespace

Command mutants_command() {
  return {"mutants", "Which planted bugs the suite catches, and how fast",
          "  attest mutants --only '*causal*'\n"
          "Exit 1 if a planted bug survives.",
          [](Flags& flags) {
            flags.group("Mutants");
            flags.value("--only", "GLOB", "Those whose id matches (*)");
            flags.value("--cases", "N", "A mutant that passes so many survives (20000)");
            flags.value("--time", "T", "So does one that outlives this (60s)");
            flags.value("--seed", "S", "Of the cases (0)");
            flags.value("--threads", "N", "Threads (one a hardware thread)");
          },
          run};
}

}  // namespace attest::tools
