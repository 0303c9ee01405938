// Bytes between L2 and DRAM: what the simulator predicts of the panel's calls and, where the counters can be read, what
// the GPU counted, by `attest predict` and `attest measure`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "attest/nightly/panel.h"
#include "figure_steps.h"

namespace attest {
namespace {

using nlohmann::json;

// Predictions are of one device on every machine: what they are compared with is themselves.
constexpr const char* predicted_device = "h100";

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

// Read and written, of one side of a measurement; none where it has not both.
std::optional<double> dram_bytes(const json& measured, const char* side) {
  double sum = 0;
  int found = 0;
  for (const json& figure : measured.at("figures"))
    for (const char* name : {"dram_read_bytes", "dram_write_bytes"})
      if (figure.at("name") == name && figure.at(side).is_number()) {
        sum += figure.at(side).get<double>();
        ++found;
      }
  return found == 2 ? std::optional(sum) : std::nullopt;
}

void predict(const StepWork& work, const PanelCase& panel, double seconds, Part& part) {
  const std::string line = fmt::format("predict --device {} {}", predicted_device, command_line(panel.the_case));
  Ended ended;
  const json report = attest_json(words_of(line), seconds, ended);
  if (report.is_null()) return;  // out of time; a prediction that fails is the tests' to find
  const double bytes = report.at("dram_read_bytes").get<double>() + report.at("dram_write_bytes").get<double>();
  add_judged(work, {fmt::format("bytes/predicted/{}", panel.name), "B", {bytes}, false}, bytes_gate, "",
             "attest " + line, part);
  part.checks.back().of_a_kernel = false;
}

// Why no kernel's counters can be read, which exit 3 says of the machine. What is one kernel's is a check of its own.
std::string measure(const StepWork& work, const std::string& kernel, const PanelCase& panel, double seconds,
                    Part& part) {
  const std::string line = fmt::format("measure --kernel {} {}", kernel, command_line(panel.the_case));
  Ended ended;
  const json report = attest_json(words_of(line), seconds, ended);
  if (ended.exit_status == exit_unsupported) return "";
  const std::optional<double> bytes = report.is_null() ? std::nullopt : dram_bytes(report, "measured");
  const std::string name = fmt::format("bytes/{}/{}", kernel, panel.name);
  if (!bytes) {
    std::string words = fmt::format("attest measure: {}: {}", ended.how(), last_words(ended.out));
    if (ended.exit_status == exit_environment) return words;
    const CheckState state = state_without_figure(ended);
    part.checks.push_back({name, state, words, is_red(state) ? "attest " + line : ""});
    return "";
  }
  const std::optional<double> predicted = dram_bytes(report, "predicted");
  add_judged(work, {name, "B", {*bytes}, false}, bytes_gate,
             predicted ? fmt::format(", predicted {}", figure_words(*predicted, "B")) : "", "attest " + line, part);
  return "";
}

}  // namespace

Part bytes_step(const StepWork& work) {
  Part part;
  part.step.name = "bytes";
  std::string why = work.facts.no_gpu;
  std::vector<std::string> kernels;
  if (why.empty()) kernels = gpu_kernels(work.night.kernels);
  if (why.empty() && kernels.empty()) why = "no kernel of tonight's runs on the GPU";
  const double seconds = work.seconds / static_cast<double>(device_panel().size() * (1 + kernels.size()));
  for (const PanelCase& panel : device_panel()) {
    predict(work, panel, seconds, part);
    for (const std::string& kernel : kernels)
      if (why.empty()) why = measure(work, kernel, panel, seconds, part);
  }
  if (!why.empty()) part.checks.push_back({"bytes/counters", CheckState::skipped, why, ""});
  part.step.note =
      fmt::format("{} figures; {}", part.series.size(), why.empty() ? "counters read" : "no counters: " + why);
  return part;
}

}  // namespace attest
