#include "attest/fuzz/mutants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"

namespace attest {
namespace {

bool matches(const std::string& glob, const std::string& text) { return ::fnmatch(glob.c_str(), text.c_str(), 0) == 0; }

/// None if it was interrupted.
std::optional<MutantResult> run_mutant(const Mutant& mutant, const MutantOptions& options) {
  CampaignOptions campaign;
  campaign.kernel = "mutant:" + mutant.id;
  campaign.seed = options.seed;
  campaign.cases = options.cases;
  campaign.time_seconds = options.time_seconds;
  campaign.threads = options.threads;
  campaign.progress = options.progress;
  campaign.max_failed = 1;
  campaign.hang_seconds = options.hang_seconds;
  const CampaignResult found = options.program ? run_campaign(*options.program, campaign)
                                               : run_campaign([&] { return mutant.make({}); }, campaign);
  if (found.stopped == Stopped::interrupted && found.failed == 0) return std::nullopt;
  MutantResult result;
  result.mutant = mutant;
  result.caught = found.failed > 0;
  result.cases = found.cases;
  result.seconds = found.seconds;
  if (!result.caught) return result;
  result.failure = found.failures.front();
  result.cases = result.failure->k + 1;
  for (const Failure& failure : found.failures)
    if (failure.k == result.failure->k && failure.property != result.failure->property)
      result.also.push_back(failure.property);
  return result;
}

}  // namespace

void MutantOptions::validate() const {
  if (cases == 0) throw InvalidInput("cases", "0", "is below 1");
  if (!(time_seconds >= 0 && time_seconds <= 1e7))
    throw InvalidInput("time", fmt::format("{} s", time_seconds), "is outside 0 to 10^7 s");
}

MutantResults run_mutants(const std::vector<Mutant>& mutants, const MutantOptions& options) {
  options.validate();
  std::vector<const Mutant*> chosen;
  std::vector<std::string> ids;
  for (const Mutant& mutant : mutants) {
    ids.push_back(mutant.id);
    if (matches(options.only, mutant.id)) chosen.push_back(&mutant);
  }
  if (chosen.empty()) {
    const std::size_t count = ids.size();
    ids.resize(std::min<std::size_t>(count, 3));
    throw InvalidInput("only", fmt::format("'{}'", options.only),
                       fmt::format("matches none of {} mutants, such as {}", count, fmt::join(ids, ", ")));
  }
  MutantResults results;
  for (const Mutant* mutant : chosen) {
    std::optional<MutantResult> result = run_mutant(*mutant, options);
    if (!result) {
      results.interrupted = true;
      break;
    }
    results.mutants.push_back(std::move(*result));
  }
  return results;
}

nlohmann::ordered_json to_json(const MutantOptions& options, const MutantResults& all) {
  const auto& results = all.mutants;
  nlohmann::ordered_json json;
  json["schema"] = "attest/mutants/1";
  json["seed"] = options.seed;
  json["generator_version"] = generator_version;
  json["caught"] = std::count_if(results.begin(), results.end(), [](const MutantResult& r) { return r.caught; });
  json["survived"] = std::count_if(results.begin(), results.end(), [](const MutantResult& r) { return !r.caught; });
  json["interrupted"] = all.interrupted;
  json["mutants"] = nlohmann::ordered_json::array();
  for (const MutantResult& result : results) {
    nlohmann::ordered_json& entry = json["mutants"].emplace_back();
    entry["id"] = result.mutant.id;
    entry["bug"] = result.mutant.bug;
    entry["caught"] = result.caught;
    entry["cases"] = result.cases;
    entry["seconds"] = result.seconds;
    if (!result.failure) continue;
    entry["property"] = result.failure->property;
    entry["also"] = result.also;
    entry["status"] = to_string(result.failure->verdict.status);
    entry["channel"] = result.failure->verdict.channel;
    entry["error_over_budget"] = to_json(result.failure->verdict)["error_over_budget"];
    entry["case"] = to_json(result.failure->minimal);
    entry["detail"] = describe(result.failure->verdict);
  }
  return json;
}

std::string to_text(const MutantResults& all) {
  const auto& results = all.mutants;
  std::string text =
      fmt::format("{:<34} {:>6} {:>7}  {:<30} {}\n", "mutant", "case", "s", "caught by", "smallest case");
  for (const MutantResult& r : results) {
    std::string by = "SURVIVED", smallest;
    if (r.failure) {
      by = fmt::format("{} ({}{})", r.failure->property, to_string(r.failure->verdict.status),
                       r.failure->verdict.channel.empty() ? "" : " " + r.failure->verdict.channel);
      smallest = command_line(r.failure->minimal);
    }
    text += fmt::format("{:<34} {:>6} {:>7.2f}  {:<30} {}\n", r.mutant.id, r.cases, r.seconds, by, smallest);
  }
  const auto caught = std::count_if(results.begin(), results.end(), [](const MutantResult& r) { return r.caught; });
  text += fmt::format("{} of {} caught{}\n", caught, results.size(),
                      all.interrupted ? ", interrupted before the others" : "");
  return text;
}

}  // namespace attest
