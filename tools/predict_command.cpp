// attest predict: what a kernel costs on a case and a device, before anybody runs it.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/simulator/html_report.h"
#include "attest/simulator/report.h"
#include "attest/simulator/trace.h"
#include "case_flags.h"
#include "commands.h"
#include "output.h"

namespace attest::tools {
namespace {

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const auto html = output_file(flags, "--html");
  const auto trace = output_file(flags, "--trace");
  if (html) results.refuse_same_file("html", html->path());
  if (trace) results.refuse_same_file("trace", trace->path());
  if (html && trace) refuse_same_file("trace", trace->path(), "--html", html->path());
  const Case c = read_case(flags);
  if (const auto why = unpredicted(c)) {
    fmt::print(stderr, "attest: {}\n", *why);
    results.finish("predict", {{"case", to_json(c)}, {"unsupported", *why}}, "");
    return exit_unsupported;
  }
  const std::string device_name = flags.text("--device").value_or("h100");
  refuse_unknown("device", device_name, device_names());
  const DeviceSpec device = load_device(device_name);
  const std::string plan_name = flags.text("--plan").value_or("attest");
  std::vector<std::string> plans;
  for (const NamedPlan& plan : named_plans) plans.emplace_back(plan.name);
  refuse_unknown("plan", plan_name, plans);
  const SimulationReport report = simulate(c, plan_named(plan_name, c, device), device, plan_name);
  if (html) html->write(html_report(report));
  if (trace) trace->write(trace_json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  results.finish("predict", to_json(report), to_table(report));
  return exit_pass;
}

}  // namespace

Command predict_command() {
  return {
      "predict", "Bytes, conflicts, spill and time of a kernel, before it runs",
      "  attest predict --model llama-3-70b --seqlen 8192 --device h100\n"
      "  attest predict --plan fa2 --nheads 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 128 --device h200 --json -",
      [](Flags& flags) {
        flags.group("Prediction");
        flags.value("--plan", "P", "A plan of `attest plans` (attest)");
        flags.value("--device", "D", "A device of `attest devices`, or a .json file (h100)");
        flags.value("--trace", "FILE", "Write a trace for Perfetto: an SM's key tiles, and the unfused path beside it");
        flags.value("--html", "FILE", "Write a page that shows it: bytes, roofline, banks, registers, an SM over time");
        declare_case_flags(flags);
      },
      run};
}

}  // namespace attest::tools
