#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/outcomes.h"

namespace attest {
namespace {

// As a shell takes it for one word: a plug-in's path may have a space.
std::string shell_word(std::string_view word) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Every status that a failing case can have, so that what was looked for and not found is seen too.
std::string failed_by_status(const Tally& tally) {
  std::vector<std::string> parts;
  for (const Status status : all_statuses)
    if (status != Status::passed && status != Status::unsupported)
      parts.push_back(fmt::format("{} {}", tally[status], to_string(status)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string_view headline(const CampaignResult& result) {
  if (result.failed + result.corpus.failed > 0) return "FAILED";
  return result.judged() > 0 ? "passed" : "NOTHING JUDGED";
}

std::string corpus_line(const CampaignOptions& options, const CampaignResult::Replays& corpus) {
  if (options.corpus.empty()) return "";
  const std::string left = corpus.replayed < corpus.files ? fmt::format(" of {}", corpus.files) : "";
  std::string line = fmt::format("  corpus: {}{} replayed, {} failed, {} unsupported; {} files added\n",
                                 corpus.replayed, left, corpus.failed, corpus.unsupported, corpus.added);
  if (!corpus.error.empty()) line += fmt::format("  corpus: not all failures joined it: {}\n", corpus.error);
  return line;
}

}  // namespace

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
  json["first_case"] = options.first_case;
  json["first_uncovered_k"] = result.first_uncovered_k;
  json["outcomes"] = outcomes_text(result.outcomes);
  json["stopped"] = to_string(result.stopped);
  json["seconds"] = result.seconds;
  json["cases_per_second"] = result.seconds > 0 ? static_cast<double>(result.cases) / result.seconds : 0;
  json["threads"] = result.threads;
  for (const Status status : all_statuses) json["statuses"][std::string(to_string(status))] = result.statuses[status];
  json["judged"] = nlohmann::ordered_json::object();
  json["properties"] = nlohmann::ordered_json::object();
  for (const auto& [property, tally] : result.by_property) {
    json["judged"][property] = tally.total();
    for (const Status status : all_statuses)
      if (tally[status] > 0) json["properties"][property][std::string(to_string(status))] = tally[status];
  }
  const CampaignResult::Replays& corpus = result.corpus;
  json["corpus"] = {{"files", corpus.files},
                    {"replayed", corpus.replayed},
                    {"failed", corpus.failed},
                    {"unsupported", corpus.unsupported},
                    {"added", corpus.added}};
  if (!corpus.error.empty()) json["corpus"]["error"] = corpus.error;
  json["failures"] = nlohmann::ordered_json::array();
  for (const Failure& failure : result.failures) {
    nlohmann::ordered_json& entry = json["failures"].emplace_back();
    entry["case"] = to_json(failure.minimal);
    entry["property"] = failure.property;
    entry["status"] = to_string(failure.verdict.status);
    entry["channel"] = failure.verdict.channel;
    entry["repro"] = failure.repro;
    if (failure.corpus_file.empty())
      entry["k"] = failure.k;
    else
      entry["corpus_file"] = failure.corpus_file;
    entry["seen"] = failure.seen;
    entry["found"] = to_json(failure.found);
    entry["shrink_runs"] = failure.shrink_runs;
    entry["verdict"] = to_json(failure.verdict);
    entry["error_over_budget"] = entry["verdict"]["error_over_budget"];
  }
  json["distribution"] = result.census.to_json();
  json["coverage"] = result.coverage.to_json();
  return json;
}

std::string to_text(const CampaignOptions& options, const CampaignResult& result) {
  std::string text = fmt::format("{} on {}: {} cases in {:.1f} s ({:.0f} a second on {} threads), seed {}",
                                 headline(result), options.kernel, result.cases, result.seconds,
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
      text += fmt::format("; stopped at {} failing cases", result.failed + result.corpus.failed);
      break;
    case Stopped::interrupted:
      text += fmt::format("; interrupted before case {}", result.first_uncovered_k);
      break;
  }
  text += "\n";
  if (result.failed > 0) text += fmt::format("  of the failed: {}\n", failed_by_status(result.statuses));
  text += corpus_line(options, result.corpus);
  for (const Failure& failure : result.failures) {
    const Verdict& v = failure.verdict;
    text += fmt::format(
        "\n  {} ({}{}), {} of the cases, first {}\n", failure.property, to_string(v.status),
        v.channel.empty() ? "" : ", channel " + v.channel, failure.seen,
        failure.corpus_file.empty() ? fmt::format("case {}", failure.k) : fmt::format("in {}", failure.corpus_file));
    text += fmt::format("    {}\n    {}\n", describe(v), failure.repro);
  }
  if (options.distribution) text += "\n" + result.census.to_string() + result.coverage.to_string();
  return text;
}

std::string describe(const Verdict& v) {
  if (!v.detail.empty()) return v.detail;
  if (v.channel.empty()) return v.rule;
  std::string text = fmt::format("{}: {}[{}, {}, {}, {}] is {:.9g} and should be {:.9g}", v.rule, v.channel,
                                 v.element[0], v.element[1], v.element[2], v.element[3], v.value, v.expected);
  text += fmt::format(", {} times the {:.3g} it may be off by", ratio_text(v.error_over_budget), v.bound);
  if (!v.visible_keys.empty()) text += fmt::format("; its row sees keys {}", v.visible_keys);
  return text;
}

std::string repro_line(std::string_view kernel, std::string_view property, const Case& c) {
  return fmt::format("attest check --kernel {} --property {} {}", shell_word(kernel), property, command_line(c));
}

}  // namespace attest
