#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "attest/fuzz/campaign.h"

namespace attest {

nlohmann::ordered_json to_json(const CampaignOptions& options, const CampaignResult& result) {
  nlohmann::ordered_json json;
  json["schema"] = "attest/fuzz/1";
  json["kernel"] = options.kernel;
  json["cases"] = result.cases;
  json["passed"] = result.passed;
  json["failed"] = result.failed;
  json["unsupported"] = result.unsupported;
  json["seed"] = options.seed;
  json["generator_version"] = generator_version;
  json["shard"] = fmt::format("{}/{}", options.shard_index, options.shard_count);
  json["first_uncovered_k"] = result.first_uncovered_k;
  json["stopped"] = to_string(result.stopped);
  json["seconds"] = result.seconds;
  json["cases_per_second"] = result.seconds > 0 ? static_cast<double>(result.cases) / result.seconds : 0;
  json["threads"] = result.threads;
  json["judged"] = result.judged;
  json["failures"] = nlohmann::ordered_json::array();
  for (const Failure& failure : result.failures) {
    nlohmann::ordered_json& entry = json["failures"].emplace_back();
    entry["case"] = to_json(failure.minimal);
    entry["property"] = failure.property;
    entry["status"] = to_string(failure.verdict.status);
    entry["channel"] = failure.verdict.channel;
    entry["repro"] = failure.repro;
    entry["k"] = failure.k;
    entry["seen"] = failure.seen;
    entry["found"] = to_json(failure.found);
    entry["shrink_runs"] = failure.shrink_runs;
    entry["verdict"] = to_json(failure.verdict);
    entry["error_over_budget"] = entry["verdict"]["error_over_budget"];
  }
  json["distribution"] = result.census.to_json();
  return json;
}

std::string to_text(const CampaignOptions& options, const CampaignResult& result) {
  std::string text = fmt::format("{} on {}: {} cases in {:.1f} s ({:.0f} a second on {} threads), seed {}",
                                 result.failed > 0 ? "FAILED" : "passed", options.kernel, result.cases, result.seconds,
                                 result.seconds > 0 ? static_cast<double>(result.cases) / result.seconds : 0,
                                 result.threads, options.seed);
  if (options.shard_count > 1) text += fmt::format(", shard {}/{}", options.shard_index, options.shard_count);
  text += fmt::format("\n  {} passed, {} failed, {} unsupported", result.passed, result.failed, result.unsupported);
  switch (result.stopped) {
    case Stopped::finished:
      break;
    case Stopped::time:
      text += fmt::format("; out of time before case {}", result.first_uncovered_k);
      break;
    case Stopped::failures:
      text += fmt::format("; stopped at {} failing cases", result.failed);
      break;
    case Stopped::interrupted:
      text += fmt::format("; interrupted before case {}", result.first_uncovered_k);
      break;
  }
  text += "\n";
  for (const Failure& failure : result.failures) {
    const Verdict& v = failure.verdict;
    text += fmt::format("\n  {} ({}{}), {} of the cases, first case {}\n", failure.property, to_string(v.status),
                        v.channel.empty() ? "" : ", channel " + v.channel, failure.seen, failure.k);
    text += fmt::format("    {}\n    {}\n", describe(v), failure.repro);
  }
  if (options.distribution) text += "\n" + result.census.to_string();
  return text;
}

std::string describe(const Verdict& v) {
  if (!v.detail.empty()) return v.detail;
  if (v.channel.empty()) return v.rule;
  std::string text = fmt::format("{}: {}[{}, {}, {}, {}] is {:.9g} and should be {:.9g}", v.rule, v.channel,
                                 v.element[0], v.element[1], v.element[2], v.element[3], v.value, v.expected);
  text += fmt::format(", {:.3g} times the {:.3g} it may be off by", v.error_over_budget, v.bound);
  if (!v.visible_keys.empty()) text += fmt::format("; its row sees keys {}", v.visible_keys);
  return text;
}

}  // namespace attest
