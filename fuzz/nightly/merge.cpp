#include "attest/nightly/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/outcomes.h"
#include "attest/nightly/history.h"
#include "attest/problem/error.h"
#include "attest/problem/file.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t most_cases = 1'000'000'000;

void read_night(const std::string& folder, Shards& shards) {
  const History history(folder, true);
  const std::vector<std::int64_t> ids = history.ids();
  if (ids.empty()) return;
  const Night night = history.load(ids.back());
  for (const Covered& covered : night.covered) shards.parts.push_back({folder, night.campaign, covered});
  for (const Check& check : night.checks)
    if (is_red(check.state)) shards.failures.push_back({folder, check.name, check.detail, check.repro, check.state});
  if (night.finished.empty()) shards.unfinished.push_back(folder);
}

// "I/N" of a report.
std::pair<std::uint64_t, std::uint64_t> shard_of(const std::string& text) {
  unsigned long long index = 0, count = 0;
  int read = 0;
  if (std::sscanf(text.c_str(), "%llu/%llu%n", &index, &count, &read) != 2 || read != static_cast<int>(text.size()) ||
      index >= count)
    throw InvalidInput("shard", fmt::format("'{}'", text.substr(0, 40)), "is not I/N with 0 <= I < N");
  return {index, count};
}

void read_fuzz(const std::string& file, const json& report, Shards& shards) {
  ShardPart part;
  part.source = file;
  std::tie(part.campaign.shard_index, part.campaign.shard_count) = shard_of(report.at("shard").get<std::string>());
  part.campaign.seed = report.at("seed").get<std::uint64_t>();
  part.campaign.generator_version = report.at("generator_version").get<std::uint64_t>();
  part.covered.kernel = report.at("kernel").get<std::string>();
  part.covered.first_case = report.at("first_case").get<std::uint64_t>();
  part.covered.outcomes = outcomes_from_text("outcomes", report.at("outcomes").get<std::string>());
  for (const json& failure : report.at("failures")) {
    const auto status = failure.at("status").get<std::string>();
    const bool crashed = status == to_string(Status::crashed) || status == to_string(Status::hung);
    shards.failures.push_back(
        {file, fmt::format("fuzz/{}/{}", part.covered.kernel, failure.at("property").get<std::string>()),
         fmt::format("{} in {}", status,
                     failure.contains("k") ? fmt::format("case {}", failure.at("k").get<std::uint64_t>())
                                           : failure.at("corpus_file").get<std::string>()),
         failure.at("repro").get<std::string>(), crashed ? CheckState::crashed : CheckState::wrong});
  }
  shards.parts.push_back(std::move(part));
}

// Whether it is one of `attest fuzz`.
bool read_report(const fs::path& path, Shards& shards) {
  constexpr std::size_t most_bytes = std::size_t{1} << 30;
  const std::string text = read_file("report", path, most_bytes);
  const std::string name = fmt::format("'{}'", path.string());
  try {
    const json report = json::parse(text);
    if (!report.is_object() || report.value("schema", "") != "attest/fuzz/1") return false;
    read_fuzz(path.string(), report, shards);
    return true;
  } catch (const json::parse_error& error) {
    throw InvalidInput("report", name, fmt::format("is not JSON: malformed at byte {}", error.byte));
  } catch (const json::exception& error) {
    throw InvalidInput("report", name, fmt::format("lacks a field of a campaign: {}", error.what()));
  } catch (const InvalidInput& error) {
    throw InvalidInput("report", name, error.what());
  }
}

using Key = std::tuple<std::string, std::uint64_t, std::uint64_t>;  // kernel, seed, generator version

// What came of each case; of one that came out differently the worst.
class Cases {
 public:
  explicit Cases(MergedCampaign& campaign) : campaign_(campaign) {}

  void add(const ShardPart& part) {
    CampaignOptions options;
    options.shard_index = part.campaign.shard_index, options.shard_count = part.campaign.shard_count;
    options.first_case = part.covered.first_case;
    const std::uint64_t end = options.case_number(part.covered.outcomes.size());
    if (options.first_case > most_cases || end > most_cases + options.shard_count)
      throw InvalidInput("shard", fmt::format("'{}' case {}", part.source, end),
                         fmt::format("is beyond {}", most_cases));
    if (end > cases_.size()) cases_.resize(end, not_run);
    std::uint64_t n = 0;
    for (const Status status : part.covered.outcomes) add(options.case_number(n++), status);
  }

  void count() const {
    bool whole = true;
    for (std::uint64_t k = 0; k < cases_.size(); ++k) {
      whole &= cases_[k] != not_run;
      if (cases_[k] == not_run) continue;
      campaign_.statuses.add(all_statuses[cases_[k]]);
      if (!whole) continue;
      campaign_.prefix_statuses.add(all_statuses[cases_[k]]);
      campaign_.prefix = k + 1;
    }
  }

 private:
  static constexpr std::uint8_t not_run = 0xFF;

  void add(std::uint64_t k, Status status) {
    const auto now = static_cast<std::uint8_t>(status);
    std::uint8_t& known = cases_[k];
    if (known != not_run) {
      ++campaign_.twice;
      if (known != now && (campaign_.disagreeing++ == 0 || k < campaign_.first_disagreeing_k))
        campaign_.first_disagreeing_k = k;
    }
    const bool known_bad =
        known != not_run && all_statuses[known] != Status::passed && all_statuses[known] != Status::unsupported;
    if (!known_bad) known = now;
  }

  MergedCampaign& campaign_;
  std::vector<std::uint8_t> cases_;  // by k
};

std::vector<std::string> missing_shards(const std::vector<const ShardPart*>& parts) {
  std::map<std::uint64_t, std::set<std::uint64_t>> seen;  // by count
  for (const ShardPart* part : parts) seen[part->campaign.shard_count].insert(part->campaign.shard_index);
  std::vector<std::string> missing;
  constexpr std::size_t most_listed = 20;
  for (const auto& [count, indices] : seen)
    for (std::uint64_t i = 0; i < count && missing.size() < most_listed; ++i)
      if (!indices.contains(i)) missing.push_back(fmt::format("{}/{}", i, count));
  return missing;
}

}  // namespace

void read_shards(const std::string& folder, Shards& shards) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw InvalidInput("dir", fmt::format("'{}'", folder), "is no folder");
  if (fs::exists(fs::path(folder) / History::file_name, error)) {
    read_night(folder, shards);
    return;
  }
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") files.insert(entry.path());
  bool found = false;
  for (const fs::path& file : files) found |= read_report(file, shards);
  if (!found)
    throw InvalidInput("dir", fmt::format("'{}'", folder),
                       fmt::format("has neither a {} nor a report of attest fuzz --json", History::file_name));
}

Merged merge(const Shards& shards) {
  std::map<Key, std::vector<const ShardPart*>> by_campaign;
  for (const ShardPart& part : shards.parts)
    by_campaign[{part.covered.kernel, part.campaign.seed, part.campaign.generator_version}].push_back(&part);
  Merged merged;
  for (const auto& [key, parts] : by_campaign) {
    MergedCampaign campaign;
    std::tie(campaign.kernel, campaign.seed, campaign.generator_version) = key;
    Cases cases(campaign);
    for (const ShardPart* part : parts) cases.add(*part);
    cases.count();
    campaign.missing_shards = missing_shards(parts);
    merged.campaigns.push_back(std::move(campaign));
  }
  merged.failures = shards.failures;
  std::stable_sort(merged.failures.begin(), merged.failures.end(), [](const auto& a, const auto& b) {
    return std::tie(b.state, a.check, a.repro) < std::tie(a.state, b.check, b.repro);
  });
  merged.unfinished = shards.unfinished;
  return merged;
}

}  // namespace attest
