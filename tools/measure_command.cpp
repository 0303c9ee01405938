// attest measure: the GPU's counters beside the prediction.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attest/fuzz/check.h"
#include "attest/fuzz/inspect.h"
#include "attest/fuzz/timing_worker.h"
#include "attest/gpu/plugin.h"
#include "attest/gpu/python_kernel.h"
#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "attest/simulator/calibration.h"
#include "attest/simulator/comparison.h"
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

/// Where and how counters were read: the first lines of a panel's file.
struct Provenance {
  MeasuringGpu gpu;
  std::string via;
  bool warm = false;
  std::string date;

  std::vector<std::string> lines() const {
    return {fmt::format("{}, {} SMs of compute capability {}.{}, driver {}, CUDA {}; {}; through {}, {} caches",
                        gpu.name, gpu.num_sms, gpu.compute_capability / 10, gpu.compute_capability % 10, gpu.driver,
                        gpu.runtime, date, via, warm ? "warm" : "cold"),
            "attest measure --panel --via " + via + (warm ? " --warm" : "")};
  }
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

std::string read_via(const Flags& flags) {
  std::string via = flags.text("--via").value_or("cupti");
  if (via != "cupti" && via != "ncu") throw InvalidInput("via", in_quotes(via), "is none of cupti, ncu");
  return via;
}

Provenance provenance(const Flags& flags) { return {measuring_gpu(), read_via(flags), flags.given("--warm"), today()}; }

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

/// What a heading, "NVIDIA H200, 132 SMs of compute capability 9.0, driver ...", says the counters are of; 0 where it
/// does not say.
MeasuringGpu gpu_of(std::string_view heading) {
  MeasuringGpu gpu;
  gpu.name = heading.substr(0, heading.find_first_of(",;"));
  const std::string behind(heading.substr(gpu.name.size()));
  int sms = 0, major = 0, minor = 0;
  if (std::sscanf(behind.c_str(), ", %5d SMs of compute capability %2d.%1d,", &sms, &major, &minor) == 3)
    gpu.num_sms = sms, gpu.compute_capability = 10 * major + minor;
  return gpu;
}

/// --device, or the one of the name that CUDA has for the GPU, which may have no more than its name in common with it.
DeviceSpec device_of(const Flags& flags, const MeasuringGpu& gpu) {
  if (std::optional<DeviceSpec> named = named_device(flags)) return *named;
  std::optional<DeviceSpec> called = device_called(gpu.name);
  if (!called)
    throw InvalidInput("device", in_quotes(gpu.name),
                       "is described by no device of `attest devices`; give one with --device, or what `attest "
                       "calibrate` writes");
  const auto refuse_other = [&](const char* what, std::int64_t here, std::int64_t there) {
    if (here != 0 && here != there)
      throw InvalidInput("device", in_quotes(gpu.name),
                         fmt::format("has {} {}, {} has {}; give one with --device, or what `attest calibrate` writes",
                                     what, here, called->name, there));
  };
  refuse_other("compute capability", gpu.compute_capability, called->compute_capability);
  refuse_other("num_sms", gpu.num_sms, called->num_sms);
  return *std::move(called);
}

void measure(std::vector<MeasuredCall>& calls, const Provenance& how, bool progress) {
  how.via == "ncu" ? measure_with_ncu(calls, how.warm, progress) : measure_with_cupti(calls, how.warm, progress);
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
      const FigureErrors e = errors_of(comparisons, figure.name, mechanism);
      if (e.calls > 0)
        errors.push_back({{"mechanism", mechanism.empty() ? "all" : mechanism},
                          {"figure", figure.name},
                          {"calls", e.calls},
                          {"mean", e.mean},
                          {"most", e.most}});
    }
  return errors;
}

/// How `calls` were counted and by what they were predicted: what a result begins with.
Json provenance_json(const std::string& heading, const std::vector<MeasuredCall>& calls, std::optional<bool> warm,
                     const DeviceSpec& device) {
  const std::string via = calls.empty() ? "" : calls.front().via;
  return {{"measured", heading},
          {"gpu", gpu_of(heading).name},
          {"via", via.empty() ? Json() : Json(via)},
          {"warm", warm ? Json(*warm) : Json()},
          {"device", device.name}};
}

std::string heading_text(const std::string& heading, const DeviceSpec& device) {
  return fmt::format("{}{}predicted for {}", heading, heading.empty() ? "" : "; ", device.name);
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
  std::optional<bool> warm = flags.given("--warm");
  if (const auto from = flags.text("--from")) {
    for (const std::string& flag : flags.given_of({"--via", "--out"}))
      throw InvalidInput("from", flag, "goes without --from, which reads what was measured");
    measured = read_measured("from", *from);
    if (measured.calls.empty()) throw InvalidInput("from", in_quotes(*from), "holds no call");
    if (*warm && measured.warm == false)
      throw InvalidInput("warm", "--warm", fmt::format("goes without {}, whose caches were cold", in_quotes(*from)));
    warm = *warm ? warm : measured.warm;  // no comment may say
    refuse_other_calls(flags, measured.calls, other);
    device = device_of(flags, gpu_of(measured.comments.empty() ? "" : measured.comments.front()));
  } else {
    const auto open_csv = [&](const std::string& name_in_folder) {
      csv = output_file(flags, "--out", name_in_folder);
      if (csv) results.refuse_same_file("out", csv->path());
      if (csv && html) refuse_same_file("out", csv->path(), "--html", html->path());
    };
    open_csv("_panel.csv");  // what is wrong with it whatever the device
    const Provenance how = provenance(flags);
    device = device_of(flags, how.gpu);
    std::string name = device->name;  // a file of --device may have any
    std::ranges::replace(name, '/', '_');
    open_csv(name + "_panel.csv");
    measured.comments = how.lines();
    measured.calls = admitted(measurement_panel());
    refuse_other_calls(flags, measured.calls, other);
    measure(measured.calls, how, true);
  }
  std::vector<Comparison> comparisons;
  for (std::size_t i = 0; i < measured.calls.size(); ++i) try {
      comparisons.push_back(compare(measured.calls[i], *device, nullptr, warm.value_or(false)));
    } catch (const InvalidInput& error) {  // a call that no kernel of ours makes
      if (measured.lines.empty()) throw;
      throw InvalidInput(*flags.text("--from"), fmt::format("line {}:", measured.lines[i]), error.what());
    }
  const std::string heading = measured.comments.empty() ? "" : measured.comments.front(),
                    with_device = heading_text(heading, *device);
  std::string text = fmt::format("{}\n\n{}", with_device, to_table(comparisons));
  if (other) text += "\n" + agreement_table(measured.calls, other->calls);
  std::vector<OutputFile::Staged> files;
  if (csv) files.push_back(csv->stage(to_csv(measured.calls, measured.comments)));
  if (html) files.push_back(html->stage(html_measure(comparisons, with_device)));
  Json result = provenance_json(heading, measured.calls, warm, *device);
  result["errors"] = errors_json(comparisons);
  result["calls"] = comparisons_json(comparisons);
  if (other) result["against"] = agreement_json(measured.calls, other->calls);
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
  read_via(flags), named_device(flags);  // refused here, whatever GPU there is
  if (flags.given("--panel")) return run_panel(flags, results);
  for (const std::string& flag : flags.given_of({"--from", "--out", "--against"}))
    throw InvalidInput(field_of(flag), in_quotes(*flags.text(flag)), "goes with --panel");
  const auto html = output_file(flags, "--html");
  if (html) results.refuse_same_file("html", html->path());
  std::vector<MeasuredCall> calls(1);
  MeasuredCall& call = calls.front();
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
  const DeviceSpec device = device_of(flags, how.gpu);
  const std::optional<DescribedPlan> plan = plan_of(flags, call, device);
  measure(calls, how, false);
  const Comparison comparison = compare(call, device, plan ? &*plan : nullptr, how.warm);
  const std::string heading = how.lines().front(), with_device = heading_text(heading, device);
  Json json = provenance_json(heading, calls, how.warm, device);
  json.update(to_json(comparison));
  std::vector<OutputFile::Staged> files;
  if (html) files.push_back(html->stage(html_measure({comparison}, with_device)));
  results.finish("measure", json, fmt::format("{}\n{}", with_device, to_table(comparison)), std::move(files));
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
      "  attest measure --panel --from h200_panel.csv --html panel.html",
      [](Flags& flags) {
        flags.group("Measurement");
        declare_kernel_flag(flags);
        declare_timeout_flag(flags, CheckOptions{}.hang_seconds);
        flags.value("--via", "W", "Who reads the counters: cupti, in this process, or ncu, around a worker (cupti)");
        flags.toggle("--warm", "Start with L2 as the same call before has left it, not empty");
        flags.value("--html", "FILE", "Write a page: predicted against measured, the worst first");
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
