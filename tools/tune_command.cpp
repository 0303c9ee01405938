// attest tune: which tile plan is best for a case on a device, and why.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "attest/simulator/html_tune.h"
#include "attest/simulator/tune.h"
#include "case_flags.h"
#include "commands.h"
#include "output.h"
#include "plan_flags.h"

namespace attest::tools {
namespace {

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const auto html = output_file(flags, "--html");
  if (html) results.refuse_same_file("html", html->path());
  const Case c = read_case(flags);
  const auto top = static_cast<int>(flags.integer("--top", 1, 100).value_or(10));
  if (const auto why = unpredicted(c)) {
    fmt::print(stderr, "attest: {}\n", *why);
    results.finish("tune", {{"case", to_json(c)}, {"unsupported", *why}}, "");
    return exit_unsupported;
  }
  const DeviceSpec device = read_device(flags);
  TuneOptions options;
  options.full = std::max(options.full, top);
  options.where = plan_conditions("where", flags.texts("--where"));
  const TuneResult result = tune(c, device, options);
  std::vector<OutputFile::Staged> files;
  if (html) files.push_back(html->stage(html_tune(result, top)));
  results.finish("tune", to_json(result, top), to_table(result, top), std::move(files));
  return exit_pass;
}

}  // namespace

Command tune_command() {
  return {"tune", "Tile plans ranked by predicted time, and why the best one is",
          "  attest tune --batch 4 --nheads 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 128 --device a100\n"
          "  attest tune --model llama-3-70b --seqlen 8192 --device h100 --top 5 --html tune.html\n"
          "  attest tune --model llama-3-70b --seqlen 8192 --device h100 --where matrix_kind=mma_sync",
          [](Flags& flags) {
            flags.group("Tuning");
            flags.value("--device", "D", "A device of `attest devices`, or a .json file (h100)");
            flags.values("--where", "FIELD=VALUE",
                         "Only plans with this, such as matrix_kind=mma_sync, which every kernel for sm_80 has; "
                         "repeatable");
            flags.value("--top", "N", "Plans that are listed with all their figures, 1 to 100 (10)");
            flags.value("--html", "FILE",
                        "Write a page that draws it: the ranking, which tile, and what time goes with");
            declare_case_flags(flags);
          },
          run};
}

}  // namespace attest::tools
