// attest measure: the GPU's counters beside the prediction.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attest/fuzz/check.h"
#include "attest/fuzz/inspect.h"
#include "attest/fuzz/progress.h"
#include "attest/fuzz/timing_worker.h"
#include "attest/gpu/plugin.h"
#include "attest/gpu/python_kernel.h"
#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "attest/problem/text.h"
#include "attest/simulator/calibration.h"
#include "attest/simulator/comparison.h"
#include "attest/simulator/in_parallel.h"
#include "case_flags.h"
#include "commands.h"
#include "kernel_flag.h"
#include "measuring.h"
#include "output.h"
#include "parse.h"
#include "plan_flags.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

Profiler read_via(const Flags& flags) {
  const std::string via = flags.text("--via").value_or("cupti");
  const std::optional<Profiler> profiler = profiler_called(via);
  if (!profiler) throw InvalidInput("via", in_quotes(via), "is none of cupti, ncu");
  return *profiler;
}

/// Of what is counted now.
Provenance provenance(const Flags& flags) {
  Provenance how = measuring_gpu();
  how.date = today(), how.via = read_via(flags), how.warm = flags.given("--warm");
  return how;
}

/// The GPU that --device names; none if it was not given.
std::optional<DeviceSpec> named_device(const Flags& flags) {
  const auto named = flags.text("--device");
  if (!named) return std::nullopt;
  refuse_unknown("device", *named, device_names());
  DeviceSpec device = load_device(*named);
  if (device.kind != DeviceKind::gpu)
    throw InvalidInput("device", in_quotes(*named), "has cube and vector cores; counters are a GPU's");
  return device;
}

/// --device, or the one of the name that CUDA has for the GPU, which may have no more than its name in common with it.
DeviceSpec device_of(const Flags& flags, const Provenance& how) {
  if (std::optional<DeviceSpec> named = named_device(flags)) return *named;
  constexpr const char* instead = "give one with --device, or what `attest calibrate` writes";
  if (how.gpu.empty()) throw InvalidInput("device", "the GPU", fmt::format("is not named by the file; {}", instead));
  std::optional<DeviceSpec> called = device_called(how.gpu);
  if (!called)
    throw InvalidInput("device", in_quotes(how.gpu),
                       fmt::format("is described by no device of `attest devices`; {}", instead));
  const auto refuse_other = [&](std::int64_t DeviceSpec::*field, std::int64_t here) {
    if (here != 0 && here != (*called).*field)
      throw InvalidInput("device", in_quotes(how.gpu),
                         fmt::format("has {} {}, {} has {}; {}", device_field_name(field), here, called->name,
                                     (*called).*field, instead));
  };
  refuse_other(&DeviceSpec::compute_capability, how.compute_capability);
  refuse_other(&DeviceSpec::num_sms, how.num_sms);
  return *std::move(called);
}

std::int64_t read_repeats(const Flags& flags) { return flags.integer("--repeats", 1, 1000).value_or(1); }

/// Counts all calls, and then all of them again, until each has `repeats` counts.
std::vector<MeasuredCall> measure(const std::vector<MeasuredCall>& calls, std::int64_t repeats, const Provenance& how,
                                  bool progress) {
  std::vector<MeasuredCall> counts;
  for (std::int64_t i = 0; i < repeats; ++i) counts.insert(counts.end(), calls.begin(), calls.end());
  (how.via == Profiler::ncu ? measure_with_ncu : measure_with_cupti)(counts, *how.warm, progress);
  return counts;
}

Json comparisons_json(const std::vector<Comparison>& comparisons) {
  Json all = Json::array();
  for (const Comparison& comparison : comparisons) all.push_back(to_json(comparison));
  return all;
}

Json errors_json(const std::vector<Comparison>& comparisons) {
  Json errors = Json::array();
  std::vector<std::string> mechanisms = mechanisms_of(comparisons);
  mechanisms.emplace_back();
  for (const std::string& mechanism : mechanisms)
    for (const ComparedFigure& figure : comparisons.front().figures) {
      const MeanAndMost e = errors_of(comparisons, figure.name, mechanism),
                        d = deviations_of(comparisons, figure.name, mechanism);
      if (e.calls > 0)
        errors.push_back({{"mechanism", mechanism.empty() ? "all" : mechanism},
                          {"figure", figure.name},
                          {"calls", e.calls},
                          {"mean", e.mean},
                          {"most", e.most},
                          {"deviation_mean", d.calls > 0 ? Json(d.mean) : Json()},
                          {"deviation_most", d.calls > 0 ? Json(d.most) : Json()}});
    }
  return errors;
}

Json provenance_json(const Provenance& how) {
  return {{"measured", to_text(how)},
          {"gpu", how.gpu.empty() ? Json() : Json(how.gpu)},
          {"via", how.via ? Json(to_string(*how.via)) : Json()},
          {"warm", how.warm ? Json(*how.warm) : Json()}};
}

/// How calls were counted and by what they were predicted: what a result begins with.
Json provenance_json(const Provenance& how, const DeviceSpec& device) {
  Json json = provenance_json(how);
  json["device"] = device.name;
  return json;
}

/// A line of text, in which a file may say what it likes; the JSON has that whole.
std::string provenance_text(const Provenance& how) {
  constexpr std::size_t longest = 240;  // twice what attest itself writes
  return without_middle(to_text(how), longest);
}

std::string heading(const Provenance& how, const DeviceSpec& device) {
  const std::string measured = provenance_text(how);
  return fmt::format("{}{}predicted for {}", measured, measured.empty() ? "" : "; ", device.name);
}

/// The panel's calls that this GPU's memory and kernels admit; the others are told on stderr.
std::vector<MeasuredCall> admitted(std::vector<MeasuredCall> calls) {
  std::erase_if(calls, [](const MeasuredCall& call) {
    const auto why = unmeasurable(call);
    if (why) fmt::print(stderr, "attest: left out: {} {}: {}\n", call.kernel, command_line(call.c), *why);
    return why.has_value();
  });
  return calls;
}

MeasuredFile read_measured(const std::string& field, const std::string& path) {
  constexpr std::size_t limit_bytes = 64 << 20;
  return measured_from_csv(read_file(field, path, limit_bytes), path);
}

/// Of --against, where it has nothing to compare `calls` with.
void refuse_other_calls(const Flags& flags, const std::vector<MeasuredCall>& calls,
                        const std::optional<MeasuredFile>& other) {
  if (other && !have_a_call_in_common(calls, other->calls))
    throw InvalidInput("against", in_quotes(*flags.text("--against")),
                       "has no counter of these calls that make one launch");
}

/// How the other of two measurements was counted, and the first where the heading has nothing of that, a line each, and
/// how far they are apart.
std::string against_text(const Flags& flags, const MeasuredFile& measured, const MeasuredFile& other) {
  const auto line = [&](const std::string& flag, const Provenance& how) {
    constexpr std::size_t longest = 160;  // of paths, which may differ at their ends alone
    const std::string said = provenance_text(how);
    return fmt::format("'{}'{}\n", escaped(without_middle(*flags.text(flag), longest)),
                       said.empty() ? " does not say how it was counted" : ": " + said);
  };
  const bool is_silent = to_text(measured.how).empty();  // only a file can be
  return (is_silent ? line("--from", measured.how) : "") + line("--against", other.how) +
         agreement_table(measured.calls, other.calls);
}

Json against_json(const MeasuredFile& measured, const MeasuredFile& other) {
  Json json = provenance_json(other.how);
  json.update(agreement_json(measured.calls, other.calls));
  return json;
}

/// Of each call that was counted; `file`: where it was read from.
std::vector<Comparison> compare_all(const MeasuredFile& measured, const DeviceSpec& device,
                                    const std::optional<std::string>& file) {
  const std::vector<std::vector<MeasuredCall>> calls = counts_by_call(measured.calls);
  std::vector<Comparison> comparisons(calls.size());
  const auto start = std::chrono::steady_clock::now();
  Progress progress(true, 0, 0);
  in_parallel(
      calls.size(),
      [&](std::size_t i) {
        try {
          comparisons[i] = compare(calls[i], device, nullptr, measured.how);
        } catch (const InvalidInput& error) {  // a call that no kernel of ours makes
          if (!file) throw;
          const char* const all = calls[i].size() > 1 ? " and the call's other counts:" : ":";
          throw InvalidInput(*file, fmt::format("line {}{}", calls[i].front().line, all), error.what());
        }
      },
      [&](std::size_t done, std::size_t of) {
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        progress.show(took.count(), done, of, "calls predicted");
      });
  return comparisons;
}

ExitCode run_panel(const Flags& flags, const Results& results) {
  for (const std::string& flag : case_flags_given(flags))
    throw InvalidInput("panel", flag, "goes without --panel, whose cases are fixed");
  for (const std::string& flag : flags.given_of({"--kernel", "--plan", "--set", "--timeout", "--load-timeout"}))
    throw InvalidInput("panel", flag, "goes without --panel, whose kernels are fixed");
  const auto html = output_file(flags, "--html");
  if (html) results.refuse_same_file("html", html->path());
  std::optional<MeasuredFile> other;  // read before minutes of measuring
  if (const auto against = flags.text("--against")) other = read_measured("against", *against);
  MeasuredFile measured;
  std::optional<OutputFile> csv;
  std::optional<DeviceSpec> device;
  if (const auto from = flags.text("--from")) {
    for (const std::string& flag : flags.given_of({"--via", "--out", "--repeats"}))
      throw InvalidInput("from", flag, "goes without --from, which reads what was measured");
    measured = read_measured("from", *from);
    if (measured.calls.empty()) throw InvalidInput("from", in_quotes(*from), "holds no call");
    if (flags.given("--warm")) {
      if (measured.how.warm == false)
        throw InvalidInput("warm", "--warm", fmt::format("goes without {}, whose caches were cold", in_quotes(*from)));
      measured.how.warm = true;  // no comment may say
    }
    refuse_other_calls(flags, measured.calls, other);
    device = device_of(flags, measured.how);
  } else {
    const auto open_csv = [&](const std::string& name_in_folder) {
      csv = output_file(flags, "--out", name_in_folder);
      if (csv) results.refuse_same_file("out", csv->path());
      if (csv && html) refuse_same_file("out", csv->path(), "--html", html->path());
    };
    open_csv("_panel.csv");  // what is wrong with it whatever the device
    measured.how = provenance(flags);
    const std::int64_t repeats = read_repeats(flags);
    measured.how.command =
        fmt::format("attest measure --panel --via {}{}{}", to_string(*measured.how.via),
                    *measured.how.warm ? " --warm" : "", repeats > 1 ? fmt::format(" --repeats {}", repeats) : "");
    device = device_of(flags, measured.how);
    open_csv(device->name + "_panel.csv");
    measured.calls = admitted(measurement_panel());
    refuse_other_calls(flags, measured.calls, other);
    measured.calls = measure(measured.calls, repeats, measured.how, true);
  }
  const std::vector<Comparison> comparisons = compare_all(measured, *device, flags.text("--from"));
  const std::string first_line = heading(measured.how, *device);
  std::string text = fmt::format("{}\n\n{}", first_line, to_table(comparisons));
  if (other) text += "\n" + against_text(flags, measured, *other);
  std::vector<OutputFile::Staged> files;
  if (csv) files.push_back(csv->stage(to_csv(measured)));
  if (html) files.push_back(html->stage(html_measure(comparisons, first_line)));
  Json result = provenance_json(measured.how, *device);
  result["errors"] = errors_json(comparisons);
  result["calls"] = comparisons_json(comparisons);
  if (other) result["against"] = against_json(measured, *other);
  results.finish("measure", result, text, std::move(files));
  return exit_pass;
}

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
  if (flags.given("--panel")) return run_panel(flags, results);
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
  const Provenance how = provenance(flags);
  if (const auto why = unmeasurable(call)) return unsupported(*why);
  const DeviceSpec device = device_of(flags, how);
  const std::optional<DescribedPlan> plan = plan_of(flags, call, device);
  const std::int64_t repeats = read_repeats(flags);
  const auto counts = counts_by_call(measure({call}, repeats, how, repeats > 1));
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
