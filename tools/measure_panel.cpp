#include "measure_panel.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attest/fuzz/progress.h"
#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "attest/problem/text.h"
#include "attest/simulator/comparison.h"
#include "attest/simulator/in_parallel.h"
#include "case_flags.h"
#include "measure_flags.h"
#include "measuring.h"
#include "parse.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

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
  Progress progress(true, 0, 0);
  in_parallel(
      calls.size(),
      [&](std::size_t i) {
        try {
          comparisons[i] = compare(calls[i], device, nullptr, measured.how);
        } catch (const InvalidInput& error) {  // a clock that no GPU has, or a call that the device cannot make
          if (!file) throw;
          const char* const all = calls[i].size() > 1 ? " and the call's other counts:" : ":";
          throw InvalidInput(*file, fmt::format("line {}{}", calls[i].front().line, all), error.what());
        }
      },
      [&](std::size_t done, std::size_t of) { progress.show_of(done, of, "calls predicted"); });
  return comparisons;
}

}  // namespace

ExitCode measure_panel(const Flags& flags, const Results& results) {
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
    measured.how.gpc_sides = gpc_sides_here(*device);  // now that calls have found memory as a process begins with it
    device = device_of(flags, measured.how);
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

}  // namespace attest::tools
