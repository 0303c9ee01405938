#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/nightly/merge.h"
#include "attest/problem/text.h"

namespace attest {
namespace {

nlohmann::ordered_json counts(const Tally& tally) {
  return {{"cases", tally.total()},
          {"passed", tally[Status::passed]},
          {"failed", tally.failed()},
          {"unsupported", tally[Status::unsupported]}};
}

}  // namespace

ExitCode Merged::exit_code() const {
  CheckState worst = CheckState::passed;
  std::uint64_t judged = 0;
  for (const ShardFailure& failure : failures) worst = std::max(worst, failure.state);
  for (const MergedCampaign& c : campaigns) {
    judged += c.statuses.total() - c.statuses[Status::unsupported];
    if (c.statuses.failed() + c.disagreeing > 0) worst = std::max(worst, CheckState::wrong);
    if (c.statuses[Status::crashed] + c.statuses[Status::hung] > 0) worst = std::max(worst, CheckState::crashed);
  }
  const ExitCode code = exit_code_of(worst);
  if (code == exit_pass && !unreadable.empty()) return exit_environment;
  return code == exit_pass && judged == 0 ? exit_unsupported : code;
}

nlohmann::ordered_json to_json(const Merged& merged) {
  nlohmann::ordered_json json = {{"schema", "attest/merge/1"}, {"exit_code", static_cast<int>(merged.exit_code())}};
  json["campaigns"] = nlohmann::ordered_json::array();
  for (const MergedCampaign& c : merged.campaigns) {
    nlohmann::ordered_json entry = {{"kernel", c.kernel}, {"seed", c.seed}, {"generator_version", c.generator_version}};
    entry.update(counts(c.statuses));
    entry["prefix"] = c.prefix;
    entry["in_prefix"] = counts(c.prefix_statuses);
    entry["twice"] = c.twice;
    entry["disagreeing"] = c.disagreeing;
    if (c.disagreeing > 0) entry["first_disagreeing_k"] = c.first_disagreeing_k;
    entry["missing_shards"] = c.missing_shards;
    json["campaigns"].push_back(std::move(entry));
  }
  json["failures"] = nlohmann::ordered_json::array();
  for (const ShardFailure& f : merged.failures)
    json["failures"].push_back({{"check", f.check},
                                {"state", to_string(f.state)},
                                {"detail", f.detail},
                                {"repro", f.repro},
                                {"source", f.source}});
  json["unfinished"] = merged.unfinished;
  json["unreadable"] = nlohmann::ordered_json::array();
  for (const auto& [source, why] : merged.unreadable) json["unreadable"].push_back({{"source", source}, {"why", why}});
  return json;
}

std::string to_text(const Merged& merged) {
  std::string text;
  for (const MergedCampaign& c : merged.campaigns) {
    text += fmt::format("{} seed {}: every case below {} was run; {} cases, {} passed, {} failed, {} unsupported\n",
                        escaped(c.kernel), c.seed, c.prefix, c.statuses.total(), c.statuses[Status::passed],
                        c.statuses.failed(), c.statuses[Status::unsupported]);
    if (c.twice > 0) text += fmt::format("  {} cases were run more than once and count once\n", c.twice);
    if (c.disagreeing > 0)
      text += fmt::format("  {} of them came out differently, the first is case {}\n", c.disagreeing,
                          c.first_disagreeing_k);
    if (!c.missing_shards.empty())
      text += fmt::format("  nothing is here of shard {}\n", fmt::join(c.missing_shards, ", "));
  }
  for (const std::string& folder : merged.unfinished)
    text += fmt::format("'{}' was interrupted and has not gone on\n", escaped(folder));
  for (const auto& [source, why] : merged.unreadable)
    text += fmt::format("'{}' counts nothing: {}\n", escaped(source), escaped(why));
  for (const ShardFailure& f : merged.failures)
    text += fmt::format("\n  {} {} ({})\n    {}\n    {}\n", to_string(f.state), escaped(f.check), escaped(f.source),
                        escaped(f.detail), escaped(f.repro));
  return text.empty() ? "no case was run\n" : text;
}

}  // namespace attest
