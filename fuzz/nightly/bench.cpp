#include "attest/nightly/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "attest/gpu/forward_buffers.h"
#include "attest/nightly/night.h"
#include "attest/nightly/panel.h"
#include "attest/nightly/rank_test.h"
#include "attest/nightly/regression.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

BenchRow time_case(Kernel& kernel, const BenchOptions& options, const PanelCase& timed, BenchResult& result) {
  const Case& c = timed.the_case;
  BenchRow row;
  row.name = timed.name;
  row.the_case = c;
  row.repro = fmt::format("attest bench --kernel {} {}", options.kernel, command_line(c));
  row.refused = kernel.unsupported(c).value_or("");
  if (!row.refused.empty()) return row;
  ForwardBuffers buffers;  // of its own: what a case leaves in memory is no part of the next
  const CallTimes times = buffers.time(kernel, c, make_inputs(c), options.repeats);
  result.on_device = times.on_device;
  row.seconds = times.seconds;
  return row;
}

}  // namespace

void BenchOptions::validate() const {
  constexpr int most = 1000;
  if (repeats < 1 || repeats > most)
    throw InvalidInput("repeats", fmt::format("{}", repeats), fmt::format("is outside 1 to {}", most));
}

BenchResult run_bench(Kernel& kernel, const BenchOptions& options) {
  options.validate();
  BenchResult result;
  for (const Case& c : options.cases) result.rows.push_back(time_case(kernel, options, {"case", c}, result));
  if (!options.cases.empty()) return result;
  for (const PanelCase& timed : cpu_panel()) {
    result.rows.push_back(time_case(kernel, options, timed, result));
    if (result.on_device) break;
  }
  if (!result.on_device) return result;
  result.rows.clear();
  for (const PanelCase& timed : device_panel()) result.rows.push_back(time_case(kernel, options, timed, result));
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
    entry["seconds"] = row.seconds;
    entry["repro"] = row.repro;
  }
  return json;
}

std::string to_text(const BenchOptions& options, const BenchResult& result) {
  std::string text = fmt::format("{}, {} repeats, {}\n", options.kernel, options.repeats,
                                 result.on_device ? "the device's clock" : "CPU seconds of the kernel's process");
  for (const BenchRow& row : result.rows) {
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
