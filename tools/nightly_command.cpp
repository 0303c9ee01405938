// attest nightly, and attest report, which makes its reports again.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "attest/fuzz/inspect.h"
#include "attest/fuzz/interrupt.h"
#include "attest/nightly/nightly.h"
#include "attest/nightly/report.h"
#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "commands.h"
#include "kernel_flag.h"
#include "output.h"
#include "parse.h"

namespace attest::tools {
namespace {

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> words;
  for (;; text.remove_prefix(words.back().size() + 1)) {
    words.emplace_back(text.substr(0, text.find(',')));
    if (words.back().size() == text.size()) return words;
  }
}

NightlyOptions read_options(const Flags& flags) {
  NightlyOptions options;
  const auto out = flags.text("--out");
  if (!out) throw InvalidInput("out", "''", "is no folder; the nights are kept in --out DIR");
  if (*out == "-") throw InvalidInput("out", "'-'", "is no folder; only --json writes to stdout");
  options.out = *out;
  if (const auto time = flags.seconds("--time")) options.seconds = *time;
  options.seed = flags.unsigned_integer("--seed");
  if (const auto shard = flags.text("--shard")) {
    const auto [index, count] = parse_shard("shard", *shard);
    options.shard_index = static_cast<std::uint64_t>(index);
    options.shard_count = static_cast<std::uint64_t>(count);
  }
  for (const std::string& kernel : flags.texts("--kernel")) options.kernels.push_back(known_kernel(kernel));
  if (const auto steps = flags.text("--steps")) options.steps = list_of(*steps);
  options.tests = flags.text("--tests").value_or("");
  if (const auto threads = flags.integer("--threads", 1, 1024)) options.threads = static_cast<int>(*threads);
  if (const auto timeout = flags.seconds("--timeout")) options.hang_seconds = *timeout;
  options.new_baseline = flags.given("--new-baseline");
  options.version = ATTEST_VERSION;
  return options;
}

// All of them, each whole or not at all, of what the history holds.
ExitCode write_reports(const std::string& folder, const Results& results, const char* command) {
  const NightReport report = make_report(History(folder, true));
  const std::filesystem::path out = folder;
  const nlohmann::ordered_json json = to_json(report);
  results.finish(
      command, json,  // first: where the disk is full by now this is what is left
      fmt::format("{}\n{}: {}\n", to_text(report), to_string(report.verdict()), (out / night_page).string()));
  expect_reports_writable(folder);
  write_file(out / night_page, to_html(report));
  write_file(out / night_junit, to_junit(report));
  write_file(out / night_json, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  return report.exit_code();
}

/// Of files that were asked for by name. One that crashes or hangs is a finding of the night, and what this machine
/// cannot run is skipped: its steps tell of both.
void refuse_what_is_no_kernel(const std::vector<std::string>& kernels, const WorkerProgram& program) {
  for (const std::string& kernel : kernels) try {
      if (!kernel_file(kernel).empty()) (void)inspect_capability(program, kernel);
    } catch (const KernelCrashed&) {
    } catch (const EnvironmentError&) {
    }
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const NightlyOptions options = read_options(flags);
  const WorkerProgram program = worker_program(flags);
  results.refuse_night_files("out", options.out);
  options.validate();
  refuse_what_is_no_kernel(options.kernels, program);
  run_nightly(options, program);
  clear_stop();
  return write_reports(options.out, results, "nightly");
}

ExitCode run_report(const Flags& flags) {
  const Results results(flags);
  const std::string folder = flags.positional().at(0);
  if (folder.empty()) throw InvalidInput("dir", "''", "is no folder");
  results.refuse_night_files("dir", folder);
  return write_reports(folder, results, "nightly");
}

}  // namespace

Command nightly_command() {
  return {"nightly", "Everything that can be checked on this machine, in a budget of time",
          "  attest nightly --out nights --time 30m\n"
          "  attest nightly --out shard-2 --time 8h --shard 2/8 --seed 7 --steps fuzz --kernel cpu\n"
          "Writes index.html, junit.xml and nightly.json, all made of history.sqlite. A night that was interrupted "
          "goes on\n"
          "where the same command is given again: within a day, or at any time with a --seed.",
          [](Flags& flags) {
            flags.group("Night");
            flags.value("--out", "DIR", "Where history, corpus and reports are kept");
            flags.value("--time", "T", "Of all steps together: 6m, 30m, 8h (30m)");
            flags.values("--kernel", "K", "Only this one; may be repeated (every kernel that runs here)");
            flags.value("--steps", "A,B", "Only these of doctor, corpus, tests, time, bytes, sanitizer, fuzz");
            flags.value("--tests", "DIR", "Where GoogleTest's programs are (beside attest)");
            flags.toggle("--new-baseline", "Compare tonight's figures with nothing, and later ones with them");
            flags.group("Campaign");
            flags.value("--seed", "S", "Of the campaign (the date, as 20260131)");
            flags.value("--shard", "I/N", "Run only this share of the cases (0/1)");
            flags.value("--threads", "N", "Worker processes (one a hardware thread)");
            declare_timeout_flag(flags, NightlyOptions{}.hang_seconds);
          },
          run};
}

Command report_command() {
  return {"report", "The page, JUnit and JSON of the newest night again", "  attest report nights\n",
          [](Flags& flags) { flags.positional("DIR", "A folder of attest nightly", 1); }, run_report};
}

}  // namespace attest::tools
