// What the panel's calls take, beside what they took.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "figure_steps.h"

namespace attest {
namespace {

using nlohmann::json;

void time_kernel(const StepWork& work, const std::string& kernel, double seconds, Part& part) {
  const std::string name = "time/" + kernel;
  Ended ended;
  // A call that the night's own limit calls hung is a finding; a step that merely runs out of time is none.
  const std::string limit = fmt::format("{}s", work.options.hang_seconds);
  const json bench = attest_json({"bench", "--kernel", kernel, "--timeout", limit}, seconds, ended);
  if (bench.is_null()) {
    const CheckState state = state_without_figure(ended);
    part.checks.push_back({name, state, fmt::format("{}: {}", ended.how(), last_words(ended.out)),
                           is_red(state) ? "attest bench --kernel " + kernel : ""});
    return;
  }
  const bool on_device = bench.at("clock") == "device";
  if (on_device && !work.facts.gpu_busy.empty()) {
    part.checks.push_back({name, CheckState::skipped, "the GPU is busy with " + work.facts.gpu_busy, ""});
    return;
  }
  for (const json& row : bench.at("rows")) {
    Series series{fmt::format("{}/{}", name, row.at("name").get<std::string>()),
                  on_device ? device_seconds_unit : cpu_seconds_unit, row.at("seconds").get<std::vector<double>>()};
    if (const auto failed = row.at("failed").get<std::string>(); !failed.empty())
      part.checks.push_back({series.name, CheckState::crashed, failed, row.at("repro").get<std::string>()});
    else if (series.values.empty())
      part.checks.push_back({series.name, CheckState::skipped, row.at("refused").get<std::string>(), ""});
    else
      add_judged(work, std::move(series), on_device ? device_time_gate : cpu_time_gate, "",
                 row.at("repro").get<std::string>(), part);
  }
}

}  // namespace

CheckState state_without_figure(const Ended& ended) {
  if (ended.out_of_time || ended.interrupted) return CheckState::skipped;
  if (ended.signal != 0 || ended.exit_status == exit_kernel_crashed) return CheckState::crashed;
  return ended.exit_status == exit_kernel_wrong ? CheckState::wrong : CheckState::skipped;
}

Part time_step(const StepWork& work) {
  Part part;
  part.step.name = "time";
  const std::size_t count = work.night.kernels.size();
  for (const std::string& kernel : work.night.kernels)
    time_kernel(work, kernel, work.seconds / static_cast<double>(count), part);
  part.step.note = fmt::format("{} figures of {} kernel{}", part.series.size(), count, count == 1 ? "" : "s");
  return part;
}

}  // namespace attest
