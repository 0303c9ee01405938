// attest predict: what a kernel costs on a case and a device, before anybody runs it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attest/fuzz/inspect.h"
#include "attest/fuzz/progress.h"
#include "attest/gpu/plugin.h"
#include "attest/plan/num_splits.h"
#include "attest/problem/error.h"
#include "attest/simulator/html_report.h"
#include "attest/simulator/html_sweep.h"
#include "attest/simulator/occupancy.h"
#include "attest/simulator/registers.h"
#include "attest/simulator/report.h"
#include "attest/simulator/sensitivity.h"
#include "attest/simulator/sweep.h"
#include "attest/simulator/trace.h"
#include "case_flags.h"
#include "commands.h"
#include "kernel_flag.h"
#include "measuring.h"
#include "output.h"
#include "parse.h"
#include "plan_flags.h"

namespace attest::tools {
namespace {

std::string plan_told_by(const std::string& kernel, const Case& c) {
  try {
    return inspect_plan(WorkerProgram{}, kernel, c);
  } catch (const EnvironmentError&) {
    if (!is_plugin(kernel)) expect_gpu("take --plan in place of --kernel");
    throw;
  }
}

/// --plan, or the plan `named` in its place, or what --kernel tells of itself.
DescribedPlan read_described(const Flags& flags, const Case& c, const DeviceSpec& device, std::string_view named = "") {
  if (!flags.given("--kernel")) return read_plan(flags, c, device, named);
  if (const auto plan = flags.text("--plan")) throw InvalidInput("plan", in_quotes(*plan), "goes without --kernel");
  const std::string kernel = read_kernel(flags);
  DescribedPlan plan = plan_from_json_text(plan_told_by(kernel, c), kernel, c, device);
  set_plan_fields(plan, flags.texts("--set"), c, device);
  return plan;
}

/// One prediction at each value of --sweep.
ExitCode run_sweep(const Flags& flags, const Results& results) {
  const SweepAxis axis = parse_sweep(*flags.text("--sweep"));
  if (const auto path = flags.text("--trace")) throw InvalidInput("trace", in_quotes(*path), "goes without --sweep");
  if (flags.given("--warm")) throw InvalidInput("warm", "--warm", "goes without --sweep");
  if (flags.given("--auto-splits")) throw InvalidInput("auto_splits", "--auto-splits", "goes without --sweep");
  if (flags.given("--sensitivity")) throw InvalidInput("sensitivity", "--sensitivity", "goes without --sweep");
  const auto csv = output_file(flags, "--csv");
  const auto html = output_file(flags, "--html");
  if (csv) results.refuse_same_file("csv", csv->path());
  if (html) results.refuse_same_file("html", html->path());
  if (csv && html) refuse_same_file("html", html->path(), "--csv", csv->path());
  std::optional<std::int64_t> seqlen_of_model;  // to read the model by: each point has its own
  if (const auto first = to_json(axis.values.front()); axis.field == "seqlen")
    seqlen_of_model = first.is_number_integer() ? first.get<std::int64_t>() : 1;
  const auto fields = case_fields(flags, seqlen_of_model);
  if (axis.of == SweepAxis::Of::plan) {
    if (const auto kernel = flags.text("--kernel"))
      throw InvalidInput("kernel", in_quotes(*kernel), "goes without --sweep plan=...");
    for (const SweepValue& value : axis.values) refuse_unknown_plan(value.text);
  }
  const DeviceSpec device = read_device(flags);
  const auto points =
      sweep(axis, fields, device, [&](const Case& c, const DeviceSpec& of_point, std::string_view plan) {
        return read_described(flags, c, of_point, plan);
      });
  if (std::none_of(points.begin(), points.end(), [](const SweepPoint& p) { return p.report.has_value(); }))
    throw InvalidInput("sweep", in_quotes(axis.field),
                       fmt::format("has no value that can be predicted; the first: {}", points.front().refused));
  std::vector<OutputFile::Staged> files;
  if (html) files.push_back(html->stage(html_sweep(axis, points)));
  if (csv) files.push_back(csv->stage(to_csv(axis, points)));
  nlohmann::ordered_json said;
  if (axis.of != SweepAxis::Of::device) said["device"] = device.name;
  if (axis.of != SweepAxis::Of::plan)
    said["plan_name"] = flags.text("--kernel").value_or(flags.text("--plan").value_or("attest"));
  said.update({{"case", fields}, {"sweep_field", axis.field}, {"sweep", to_json(axis, points)}});
  results.finish("predict", said, to_table(axis, points), std::move(files));
  return exit_pass;
}

/// As many as choose_num_splits() finds best for the plan on the device.
std::int64_t chosen_splits(const Case& c, const KernelPlan& plan, const DeviceSpec& device) {
  if (c.num_splits != 1)
    throw InvalidInput("num_splits", fmt::format("{}", c.num_splits), "is not left to --auto-splits to choose");
  if (device.kind == DeviceKind::cube_vector)
    throw InvalidInput("auto_splits", "--auto-splits",
                       fmt::format("asks for splits, which the model of {} lacks", device.name));
  const int registers = estimate_registers(plan, device).registers_per_thread;
  return choose_num_splits(plan, c.problem, device.num_sms, occupancy(plan, registers, device).ctas_per_sm);
}

/// estimates_behind(), with a line on stderr that says how far it is.
std::vector<Estimate> moved_estimates(const SimulationReport& report) {
  Progress progress(true, 0, 0);
  return estimates_behind(report, [&](std::size_t done, std::size_t of) {
    progress.show_of(done, of, "predictions with an estimate moved");
  });
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  if (flags.given("--sweep")) return run_sweep(flags, results);
  if (const auto path = flags.text("--csv")) throw InvalidInput("csv", in_quotes(*path), "goes with --sweep");
  const auto html = output_file(flags, "--html");
  const auto trace = output_file(flags, "--trace");
  if (html) results.refuse_same_file("html", html->path());
  if (trace) results.refuse_same_file("trace", trace->path());
  if (html && trace) refuse_same_file("trace", trace->path(), "--html", html->path());
  Case c = read_case(flags);
  if (const auto why = unpredicted(c)) {
    fmt::print(stderr, "attest: {}\n", *why);
    results.finish("predict", {{"case", to_json(c)}, {"unsupported", *why}}, "");
    return exit_unsupported;
  }
  const DeviceSpec device = read_device(flags);
  const DescribedPlan plan = read_described(flags, c, device);
  if (flags.given("--auto-splits")) c.num_splits = chosen_splits(c, plan.plan, device);
  TileWalkOptions effort;
  effort.warm = flags.given("--warm");
  SimulationReport report = simulate(c, plan.plan, device, plan.name, effort);
  if (flags.given("--sensitivity") || html) report.hangs_on = moved_estimates(report);
  std::vector<OutputFile::Staged> files;
  if (html) files.push_back(html->stage(html_report(report)));
  if (trace)
    files.push_back(trace->stage(trace_json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  results.finish("predict", to_json(report), to_table(report), std::move(files));
  return exit_pass;
}

}  // namespace

Command predict_command() {
  return {
      "predict", "Bytes, conflicts, spill and time of a kernel, before it runs",
      "  attest predict --model llama-3-70b --seqlen 8192 --device h100\n"
      "  attest predict --plan fa2 --nheads 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 128 --device h200 --json -\n"
      "  attest predict --plan fa2 --set swizzled=false --set pad_chunks=1 --seqlen-q 4096 --seqlen-k 4096 --headdim "
      "128\n"
      "  attest predict --model llama-3-70b --sweep seqlen=512..131072:x2 --html lengths.html\n"
      "  attest predict --model llama-3-70b --seqlen 8192 --device b200 --sensitivity\n"
      "  attest predict --model llama-3-70b --seqlen 8192 --sweep device=a100,h100,h200",
      [](Flags& flags) {
        flags.group("Prediction");
        declare_plan_flags(flags);
        flags.value("--kernel", "K", "In place of --plan: what a kernel, such as ./libmine.so, tells of its plan");
        flags.value("--device", "D", "A device of `attest devices`, or a .json file (h100)");
        flags.toggle("--warm", "Start with L2 as the same call before has left it, not empty");
        flags.toggle("--sensitivity",
                     "Halve and double each field of the device that is an estimate, and say which figures move");
        flags.toggle("--auto-splits", "As many splits as suit the plan on the device, in place of num_splits");
        flags.value("--trace", "FILE",
                    "Write a trace for Perfetto: SMs, warps, copies, and the unfused path beside them");
        flags.value(
            "--html", "FILE",
            "Write a page that shows it: bytes, roofline, banks, an SM over time, --sensitivity; or a sweep's curves");
        flags.value("--sweep", "FIELD=VALUES",
                    "A prediction at each of A..B:xF, A..B:+S or A,B,C of a field of the case, the plan or the device, "
                    "in place of "
                    "what they say, or of plan and device by their names; seqlen: both lengths");
        flags.value("--csv", "FILE", "Write the sweep as CSV");
        declare_case_flags(flags);
      },
      run};
}

}  // namespace attest::tools
