// attest measure: the GPU's counters beside the prediction.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attest/fuzz/check.h"
#include "attest/fuzz/inspect.h"
#include "attest/fuzz/timing_worker.h"
#include "attest/gpu/plugin.h"
#include "attest/gpu/python_kernel.h"
#include "attest/problem/error.h"
#include "attest/problem/text.h"
#include "attest/simulator/comparison.h"
#include "case_flags.h"
#include "commands.h"
#include "kernel_flag.h"
#include "measure_flags.h"
#include "measure_panel.h"
#include "measuring.h"
#include "output.h"
#include "parse.h"
#include "plan_flags.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

/// Profilers see the launches that this process makes.
void refuse_what_makes_none(const std::string& kernel, const WorkerProgram& program) {
  if (is_python_kernel(kernel))
    throw InvalidInput("kernel", in_quotes(kernel), "launches in a process of its own, where nothing is counted");
  try {
    if (inspect_capability(program, kernel).device != "cpu") return;
  } catch (const EnvironmentError&) {
    if (!is_plugin(kernel)) expect_gpu(without_gpu);
    throw;
  }
  throw InvalidInput("kernel", in_quotes(kernel), "runs on no GPU, whose counters are read");
}

/// A kernel that is not attest's makes the call in a worker first, and what crashes or hangs there is never loaded into
/// this process. Why it does not take the call; empty where it does. Throws KernelCrashed.
std::string refusal_in_a_worker(const WorkerProgram& program, double hang_seconds, const MeasuredCall& call) {
  return TimingWorker(program, call.kernel, hang_seconds).time(call.c, 1).refused;
}

/// --plan, or what a plug-in tells of itself; none where nobody says, or attest knows the kernel.
std::optional<DescribedPlan> plan_of(const Flags& flags, const MeasuredCall& call, const DeviceSpec& device) {
  if (flags.given("--plan") || flags.given("--set")) return read_plan(flags, call.c, device);
  if (!is_plugin(call.kernel)) return std::nullopt;
  std::string told;
  try {
    told = inspect_plan(WorkerProgram{}, call.kernel, call.c);
  } catch (const InvalidInput&) {
    return std::nullopt;  // it tells none
  }
  return plan_from_json_text(told, call.kernel, call.c, device);
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  read_via(flags), read_repeats(flags), named_device(flags);  // refused here, whatever GPU there is
  if (flags.given("--panel")) return measure_panel(flags, results);
  for (const std::string& flag : flags.given_of({"--from", "--out", "--against"}))
    throw InvalidInput(field_of(flag), in_quotes(*flags.text(flag)), "goes with --panel");
  const auto html = output_file(flags, "--html");
  if (html) results.refuse_same_file("html", html->path());
  MeasuredCall call;
  call.c = read_case(flags);
  call.kernel = flags.given("--kernel") ? read_kernel(flags) : "sm80";
  check_plan_flags(flags);
  const WorkerProgram worker = worker_program(flags);
  const double hang_seconds = flags.seconds("--timeout").value_or(CheckOptions{}.hang_seconds);
  if (flags.given("--kernel")) refuse_what_makes_none(call.kernel, worker);
  const auto unsupported = [&](const std::string& why) {
    fmt::print(stderr, "attest: {}\n", why);
    results.finish("measure", {{"kernel", call.kernel}, {"case", to_json(call.c)}, {"unsupported", why}}, "");
    return exit_unsupported;
  };
  if (is_plugin(call.kernel))
    if (const std::string why = refusal_in_a_worker(worker, hang_seconds, call); !why.empty()) return unsupported(why);
  Provenance how = provenance(flags);
  if (const auto why = unmeasurable(call)) return unsupported(*why);
  DeviceSpec device = device_of(flags, how);
  const std::optional<DescribedPlan> plan = plan_of(flags, call, device);
  const std::int64_t repeats = read_repeats(flags);
  const auto counts = counts_by_call(measure({call}, repeats, how, repeats > 1));
  how.gpc_sides = gpc_sides_here(device);  // now that calls have found memory as a process begins with it
  device = device_of(flags, how);
  if (counts.size() > 1)
    throw InvalidInput("repeats", std::to_string(repeats),
                       "counts are not of the same launches each time, which have no mean; take 1");
  const Comparison comparison = compare(counts.front(), device, plan ? &*plan : nullptr, how);
  const std::string first_line = heading(how, device);
  Json json = provenance_json(how, device);
  json.update(to_json(comparison));
  std::vector<OutputFile::Staged> files;
  if (html) files.push_back(html->stage(html_measure({comparison}, first_line)));
  results.finish("measure", json, fmt::format("{}\n{}", first_line, to_table(comparison)), std::move(files));
  return exit_pass;
}

}  // namespace

Command measure_command() {
  return {
      "measure", "A GPU's counters beside the prediction",
      "  attest measure --kernel sm80 --batch 4 --nheads 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 128\n"
      "  attest measure --kernel ./libmine.so --dtype fp16 --nheads 8 --seqlen-q 1024 --seqlen-k 1024 --headdim 64\n"
      "  attest measure --kernel unfused --via ncu --nheads 8 --seqlen-q 1024 --seqlen-k 1024 --headdim 64\n"
      "  attest measure --panel --out h200_panel.csv --html panel.html\n"
      "  attest measure --panel --repeats 5 --out h200_panel.csv\n"
      "  attest measure --panel --from h200_panel.csv --html panel.html",
      [](Flags& flags) {
        flags.group("Measurement");
        declare_kernel_flag(flags);
        declare_timeout_flag(flags, CheckOptions{}.hang_seconds);
        flags.value("--via", "W", "Who reads the counters: cupti, in this process, or ncu, around a worker (cupti)");
        flags.toggle("--warm", "Start with L2 as the same call before has left it, not empty");
        flags.value("--html", "FILE", "Write a page: predicted against measured, the worst first");
        flags.value("--repeats", "N", "Counts of each call: their mean is compared, and how far they deviate told (1)");
        flags.toggle("--panel", "A fixed set of kernels, shapes and masks in place of a CASE");
        flags.value("--out", "PATH", "Write the panel's counters as CSV; a folder gets DEVICE_panel.csv");
        flags.value("--from", "FILE", "Read the panel's counters from a CSV, without a GPU");
        flags.value("--against", "FILE", "Compare the panel's counters with those of another CSV");
        flags.group("Prediction");
        declare_plan_flags(flags);
        flags.value("--device", "D", "A device of `attest devices`, or a .json file (the one of the GPU's name)");
        declare_case_flags(flags);
      },
      run};
}

}  // namespace attest::tools
