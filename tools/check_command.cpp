// attest check: one case under one kernel, judged element by element.
#include <optional>
#include <string>
#include <vector>

#include "attest/fuzz/commands.h"
#include "attest/problem/error.h"
#include "case_flags.h"
#include "commands.h"
#include "kernel_flag.h"
#include "output.h"
#include "parse.h"

namespace attest::tools {
namespace {

/// The file to draw the mask in, if it was asked for.
std::optional<OutputFile> read_mask(const Flags& flags, CheckOptions& options) {
  const auto path = flags.text("--mask");
  options.mask = path.has_value();
  options.mask_options.batch = flags.integer("--mask-batch");
  options.mask_options.head = flags.integer("--mask-head");
  if (!path) {
    for (const std::string& flag : flags.given_of({"--mask-batch", "--mask-head"}))
      throw InvalidInput(field_of(flag), *flags.text(flag), "selects a part of the mask, which takes --mask FILE");
    return std::nullopt;
  }
  return output_file(flags, "--mask");
}

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
  if (flags.given("--in-process"))
    for (const std::string& flag : flags.given_of({"--timeout", "--load-timeout"}))
      throw InvalidInput(field_of(flag), in_quotes(*flags.text(flag)), "goes without --in-process, which ends no call");
  options.diffs = flags.integer("--diffs", 0).value_or(0);
  options.dry_run = flags.given("--dry-run");
  options.truth = flags.text("--truth").value_or("cpu");
  if (const auto timeout = flags.seconds("--timeout")) options.hang_seconds = *timeout;
  options.progress = true;
  const std::optional<OutputFile> mask_file = read_mask(flags, options);
  if (mask_file) results.refuse_same_file("mask", mask_file->path());
  const CommandResult result = attest::check_command(
      options, flags.given("--in-process") ? std::nullopt : std::make_optional(worker_program(flags)));
  results.finish("check", *result.json, result.text);
  if (mask_file && !result.svg.empty()) mask_file->write(result.svg);
  return result.exit_code;
}

}  // namespace

Command check_command() {
  return {"check", "One case, judged element by element",
          "  attest check --seqlen-q 1 --seqlen-k 4096 --nheads 8 --nheads-k 1 --causal --diffs 5\n"
          "  attest check --kernel cpu:tile_m=64 --case case.json --property reference\n"
          "  attest check --seqlen-q 100 --seqlen-k 300 --causal --window 64,-1 --mask mask.svg",
          [](Flags& flags) {
            flags.group("Check");
            declare_kernel_flag(flags);
            flags.value("--property", "P", "Only this property (all that apply)");
            flags.value("--truth", "W", "Where O's and LSE's truth is computed: cpu, or gpu for long sequences (cpu)");
            flags.value("--diffs", "N", "List the N elements that are worst for their bound (0)");
            flags.value("--mask", "FILE", "Read which keys each row really sees and draw it beside the truth (SVG)");
            flags.value("--mask-batch", "B", "Only this batch entry's mask (all are read, the worst is drawn)");
            flags.value("--mask-head", "H", "Only this query head's mask");
            declare_timeout_flag(flags, CheckOptions{}.hang_seconds);
            flags.toggle("--in-process", "Run the kernel in this process, for a debugger, and without --timeout");
            flags.toggle("--dry-run", "Say what would be run");
            declare_case_flags(flags);
          },
          run};
}

}  // namespace attest::tools
