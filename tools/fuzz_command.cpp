// attest fuzz: a kernel against many generated cases.
#include <limits>

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
  options.progress = true;
  return options;
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const CommandResult result = attest::fuzz_command(read_options(flags));
  results.finish("fuzz", *result.json, result.text);
  return static_cast<ExitCode>(result.exit_code);
}

}  // namespace

Command fuzz_command() {
  return {"fuzz", "Put a kernel to many generated cases",
          "  attest fuzz --kernel cpu --time 60s --json fuzz.json\n"
          "  attest fuzz --kernel cpu:tile_m=64,stages=2 --cases 100000 --seed 7 --shard 0/4\n"
          "Case k is a pure function of the seed and k; shard I of N runs every k with k mod N = I.",
          [](Flags& flags) {
            flags.group("Campaign");
            declare_kernel_flag(flags);
            flags.value("--cases", "N",
                        "Cases of the whole campaign, all shards together (10000, or as --time allows)");
            flags.value("--time", "T", "Start no case after this: 500ms, 60s, 30m, 8h");
            flags.value("--seed", "S", "Of the campaign (0)");
            flags.value("--shard", "I/N", "Run only this share of the cases (0/1)");
            flags.value("--threads", "N", "Threads, each with a kernel of its own (one a hardware thread)");
          },
          run};
}

}  // namespace attest::tools
