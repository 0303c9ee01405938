// attest check: one case under one kernel, judged element by element.
#include <string>
#include <vector>

#include "attest/fuzz/commands.h"
#include "case_flags.h"
#include "commands.h"
#include "kernel_flag.h"
#include "output.h"

namespace attest::tools {
namespace {

ExitCode run(const Flags& flags) {
  const Results results(flags);
  CheckOptions options;
  options.the_case = read_case(flags);
  options.kernel = read_kernel(flags);
  if (const auto property = flags.text("--property")) {
    std::vector<std::string> names;
    for (const Property& known : properties()) names.emplace_back(known.name);
    refuse_unknown("property", *property, names);
    options.property = *property;
  }
  options.diffs = flags.integer("--diffs", 0).value_or(0);
  options.dry_run = flags.given("--dry-run");
  const CommandResult result = attest::check_command(options);
  results.finish("check", *result.json, result.text);
  return static_cast<ExitCode>(result.exit_code);
}

}  // namespace

Command check_command() {
  return {"check", "One case, judged element by element",
          "  attest check --seqlen-q 1 --seqlen-k 4096 --nheads 8 --nheads-k 1 --causal --diffs 5\n"
          "  attest check --kernel cpu:tile_m=64 --case case.json --property reference",
          [](Flags& flags) {
            flags.group("Check");
            declare_kernel_flag(flags);
            flags.value("--property", "P", "Only this property (all that apply)");
            flags.value("--diffs", "N", "List the N elements that are worst for their bound (0)");
            flags.toggle("--dry-run", "Say what would be run");
            declare_case_flags(flags);
          },
          run};
}

}  // namespace attest::tools
