// attest fuzz: a kernel against many generated cases.
#include <limits>
#include <optional>

#include "attest/fuzz/commands.h"
#include "attest/problem/error.h"
#include "commands.h"
#include "kernel_flag.h"
#include "output.h"
#include "parse.h"

namespace attest::tools {
namespace {

CampaignOptions read_options(const Flags& flags) {
  CampaignOptions options;
  options.kernel = read_kernel(flags);
  if (const auto seed = flags.unsigned_integer("--seed")) options.seed = *seed;
  if (const auto time = flags.seconds("--time")) {
    options.time_seconds = *time;
    options.cases = std::numeric_limits<std::int64_t>::max();  // the time is the limit, unless --cases is one too
  }
  if (const auto cases = flags.integer("--cases", 1)) options.cases = static_cast<std::uint64_t>(*cases);
  if (const auto shard = flags.text("--shard")) {
    const auto [index, count] = parse_shard("shard", *shard);
    options.shard_index = static_cast<std::uint64_t>(index);
    options.shard_count = static_cast<std::uint64_t>(count);
  }
  if (const auto threads = flags.integer("--threads", 1, 1024)) options.threads = static_cast<int>(*threads);
  if (const auto timeout = flags.seconds("--timeout")) options.hang_seconds = *timeout;
  if (const auto corpus = flags.text("--corpus")) {
    if (corpus->empty()) throw InvalidInput("corpus", "''", "is no folder");
    if (*corpus == "-") throw InvalidInput("corpus", "'-'", "is no folder; only --json writes to stdout");
    options.corpus = *corpus;
  }
  options.progress = true;
  return options;
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const std::optional<OutputFile> junit = output_file(flags, "--junit");
  if (junit) results.refuse_same_file("junit", junit->path());
  const CommandResult result = attest::fuzz_command(read_options(flags), worker_program(flags));
  results.finish("fuzz", *result.json, result.text);
  if (junit) junit->write(result.junit);
  return result.exit_code;
}

}  // namespace

Command fuzz_command() {
  return {"fuzz", "Put a kernel to many generated cases",
          "  attest fuzz --kernel cpu --time 60s --json fuzz.json\n"
          "  attest fuzz --kernel cpu:tile_m=64,stages=2 --cases 100000 --seed 7 --shard 0/4\n"
          "  attest fuzz --corpus failures --junit fuzz.xml\n"
          "Case k is a pure function of the seed and k; shard I of N runs every k with k mod N = I.",
          [](Flags& flags) {
            flags.group("Campaign");
            declare_kernel_flag(flags);
            flags.value("--cases", "N",
                        "Cases of the whole campaign, all shards together (10000, or as --time allows)");
            flags.value("--time", "T", "Start no case after this: 500ms, 60s, 30m, 8h");
            flags.value("--seed", "S", "Of the campaign (0)");
            flags.value("--shard", "I/N", "Run only this share of the cases (0/1)");
            flags.value("--threads", "N", "Worker processes, each with a kernel of its own (one a hardware thread)");
            declare_timeout_flag(flags, CampaignOptions{}.hang_seconds);
            flags.value("--corpus", "DIR", "Failures of before, put to the kernel first; new ones join them");
            flags.value("--junit", "FILE", "Write JUnit XML, a testcase for each property");
          },
          run};
}

}  // namespace attest::tools
