#include "attest/nightly/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "attest/fuzz/timing_worker.h"
#include "attest/nightly/night.h"
#include "attest/nightly/panel.h"
#include "attest/nightly/rank_test.h"
#include "attest/nightly/regression.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

// False where the kernel failed: nothing more is timed.
bool time_case(TimingWorker& worker, const BenchOptions& options, const PanelCase& timed, BenchResult& result) {
  const Case& c = timed.the_case;
  BenchRow& row = result.rows.emplace_back();
  row.name = timed.name;
  row.the_case = c;
  row.repro = fmt::format("attest bench --kernel {} {}", options.kernel, command_line(c));
  try {
    const TimedCalls calls = worker.time(c, options.repeats);
    row.refused = calls.refused;
    row.seconds = calls.times.seconds;
  } catch (const KernelCrashed& error) {
    row.failed = error.what();
  }
  return row.failed.empty();
}

}  // namespace

void BenchOptions::validate() const {
  constexpr int most = 1000;
  if (repeats < 1 || repeats > most)
    throw InvalidInput("repeats", fmt::format("{}", repeats), fmt::format("is outside 1 to {}", most));
}

ExitCode BenchResult::exit_code() const {
  if (!rows.empty() && !rows.back().failed.empty()) return exit_kernel_crashed;
  const bool timed = std::any_of(rows.begin(), rows.end(), [](const BenchRow& row) { return !row.seconds.empty(); });
  return timed ? exit_pass : exit_unsupported;
}

BenchResult run_bench(const WorkerProgram& program, const BenchOptions& options) {
  options.validate();
  TimingWorker worker(program, options.kernel, options.hang_seconds);
  BenchResult result;
  result.on_device = worker.on_device();
  for (const Case& c : options.cases)
    if (!time_case(worker, options, {"case", c}, result)) return result;
  if (!options.cases.empty()) return result;
  for (const PanelCase& timed : result.on_device ? device_panel() : cpu_panel())
    if (!time_case(worker, options, timed, result)) return result;
  return result;
}

nlohmann::ordered_json to_json(const BenchOptions& options, const BenchResult& result) {
  nlohmann::ordered_json json = {{"schema", "attest/bench/1"}, {"kernel", options.kernel}};
  json["clock"] = result.on_device ? "device" : "process";
  json["repeats"] = options.repeats;
  json["rows"] = nlohmann::ordered_json::array();
  for (const BenchRow& row : result.rows) {
    nlohmann::ordered_json& entry = json["rows"].emplace_back();
    entry["name"] = row.name;
    entry["case"] = to_json(row.the_case);
    entry["refused"] = row.refused;
    entry["failed"] = row.failed;
    entry["seconds"] = row.seconds;
    entry["repro"] = row.repro;
  }
  return json;
}

std::string to_text(const BenchOptions& options, const BenchResult& result) {
  std::string text = fmt::format("{}, {} repeats, {}\n", options.kernel, options.repeats,
                                 result.on_device ? "the device's clock" : "CPU seconds of the kernel's process");
  for (const BenchRow& row : result.rows) {
    if (!row.failed.empty()) {
      text += fmt::format("  {:<24} {}; {}\n", row.name, row.failed, row.repro);
      continue;
    }
    if (row.seconds.empty()) {
      text += fmt::format("  {:<24} refused: {}\n", row.name, row.refused);
      continue;
    }
    const auto [least, most] = std::minmax_element(row.seconds.begin(), row.seconds.end());
    const auto words = [&](double seconds) { return figure_words(seconds, device_seconds_unit); };
    text += fmt::format("  {:<24} {:>10}, {} to {}   {}\n", row.name, words(median(row.seconds)), words(*least),
                        words(*most), row.repro);
  }
  return text;
}

}  // namespace attest
