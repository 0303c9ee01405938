// attest bench: what calls of a kernel take.
#include <nlohmann/json.hpp>

#include "attest/nightly/bench.h"
#include "case_flags.h"
#include "commands.h"
#include "kernel_flag.h"
#include "output.h"

namespace attest::tools {
namespace {

ExitCode run(const Flags& flags) {
  const Results results(flags);
  BenchOptions options;
  options.kernel = read_kernel(flags);
  if (!case_flags_given(flags).empty()) options.cases.push_back(read_case(flags));
  if (const auto repeats = flags.integer("--repeats", 1, 1000)) options.repeats = static_cast<int>(*repeats);
  if (const auto timeout = flags.seconds("--timeout")) options.hang_seconds = *timeout;
  const BenchResult result = run_bench(worker_program(flags), options);
  results.finish("bench", to_json(options, result), to_text(options, result));
  return result.exit_code();
}

}  // namespace

Command bench_command() {
  return {"bench", "What calls of a kernel take, by the device's clock",
          "  attest bench --kernel sm80\n"
          "  attest bench --kernel sm80 --nheads 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 128 --dtype bf16\n"
          "Without a CASE: the panel that attest nightly times.",
          [](Flags& flags) {
            flags.group("Bench");
            declare_kernel_flag(flags);
            flags.value("--repeats", "N", "Measurements of each call (9)");
            declare_timeout_flag(flags, BenchOptions{}.hang_seconds);
            declare_case_flags(flags);
          },
          run};
}

}  // namespace attest::tools
