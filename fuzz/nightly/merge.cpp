#include "attest/nightly/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iterator>
#include <set>
#include <tuple>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/outcomes.h"
#include "attest/nightly/history.h"
#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "attest/problem/json_reader.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using Json = JsonReader::Json;

// Every k of the part is below most_cases, so that no number made of it wraps.
void check_part(const ShardPart& part) {
  const std::uint64_t index = part.campaign.shard_index, count = part.campaign.shard_count;
  if (count > most_cases || index >= count)
    throw InvalidInput("shard", fmt::format("'{}/{}' of '{}'", index, count, part.source),
                       fmt::format("is not I/N with 0 <= I < N <= {}", most_cases));
  const std::uint64_t cases = part.covered.outcomes.size(), first = part.covered.first_case;
  if (first >= most_cases || cases > (most_cases - first) / count)
    throw InvalidInput("shard", fmt::format("'{}' first_case {}, {} cases", part.source, first, cases),
                       fmt::format("ends beyond case {}", most_cases));
}

void read_night(const std::string& folder, Shards& shards) {
  const History history(folder, true);
  const std::vector<std::int64_t> ids = history.ids();
  if (ids.empty()) return;
  const Campaign campaign = history.load(ids.back()).campaign;
  std::vector<ShardPart> parts;
  bool finished = true;
  for (const std::int64_t id : ids) {  // a shard that was begun again has several nights of one campaign
    const Night night = history.load(id);
    if (!(night.campaign == campaign)) continue;
    for (const Covered& covered : night.covered) check_part(parts.emplace_back(ShardPart{folder, campaign, covered}));
    for (const Check& check : night.checks)
      if (is_red(check.state)) shards.failures.push_back({folder, check.name, check.detail, check.repro, check.state});
    finished = !night.finished.empty();
  }
  shards.parts.insert(shards.parts.end(), parts.begin(), parts.end());
  if (!finished) shards.unfinished.push_back(folder);
}

// "I/N" of a report.
std::pair<std::uint64_t, std::uint64_t> shard_of(const JsonReader& reader, const std::string& text) {
  unsigned long long index = 0, count = 0;
  int read = 0;
  if (std::sscanf(text.c_str(), "%llu/%llu%n", &index, &count, &read) != 2 || read != static_cast<int>(text.size()) ||
      index >= count)
    reader.refuse("shard", fmt::format("'{}'", text.substr(0, 40)), "is not I/N with 0 <= I < N");
  return {index, count};
}

ShardFailure failure_of(const JsonReader& reader, const Json& failure, const std::string& path) {
  if (!failure.is_object()) reader.refuse(path, shown_value(failure), "must be an object");
  const auto text = [&](const char* name) { return reader.any_text(failure, name, fmt::format("{}.{}", path, name)); };
  const std::string status = text("status");
  if (std::none_of(std::begin(all_statuses), std::end(all_statuses), [&](Status s) { return to_string(s) == status; }))
    reader.refuse(path + ".status", fmt::format("'{}'", status.substr(0, 40)), "is no status of a verdict");
  const bool crashed = status == to_string(Status::crashed) || status == to_string(Status::hung);
  const std::string where = failure.contains("k")
                                ? fmt::format("case {}", reader.unsigned_integer(failure, "k", path + ".k"))
                                : text("corpus_file");
  return {"", text("property"), fmt::format("{} in {}", status, where), text("repro"),
          crashed ? CheckState::crashed : CheckState::wrong};
}

void read_fuzz(const std::string& file, const JsonReader& reader, const Json& report, Shards& shards) {
  const auto number = [&](const char* name) { return reader.unsigned_integer(report, name, name); };
  const auto text = [&](const char* name) { return reader.any_text(report, name, name); };
  ShardPart part;
  part.source = file;
  std::tie(part.campaign.shard_index, part.campaign.shard_count) = shard_of(reader, text("shard"));
  part.campaign.seed = number("seed");
  part.campaign.generator_version = number("generator_version");
  part.covered.kernel = text("kernel");
  part.covered.first_case = number("first_case");
  part.covered.outcomes = outcomes_from_text(fmt::format("'{}' outcomes", file), text("outcomes"));
  check_part(part);
  const Json& list = reader.member(report, "failures", "failures");
  if (!list.is_array()) reader.refuse("failures", shown_value(list), "must be a list");
  std::vector<ShardFailure> failures;
  for (const Json& failure : list) {
    ShardFailure read = failure_of(reader, failure, fmt::format("failures[{}]", failures.size()));
    read.source = file, read.check = fmt::format("fuzz/{}/{}", part.covered.kernel, read.check);
    failures.push_back(std::move(read));
  }
  shards.parts.push_back(std::move(part));
  shards.failures.insert(shards.failures.end(), failures.begin(), failures.end());
}

// Whether it is one of `attest fuzz`.
bool read_report(const fs::path& path, Shards& shards) {
  constexpr std::size_t most_bytes = std::size_t{1} << 30;
  constexpr std::string_view prefix = "attest/fuzz/", schema = "attest/fuzz/1";
  const std::string text = read_file("report", path, most_bytes), file = path.string();
  const JsonReader reader(file);
  const Json any = Json::parse(text, nullptr, false);
  const std::string name = any.is_object() && any.contains("schema") && any["schema"].is_string()
                               ? any["schema"].get<std::string>()
                               : std::string();
  if (!any.is_discarded() && !name.starts_with(prefix)) return false;  // another program's, whatever is in it
  const Json report = reader.parse_any("report", text);
  if (name != schema)
    reader.refuse("schema", fmt::format("'{}'", name.substr(0, 40)),
                  fmt::format("is not '{}', the one this version reads", schema));
  read_fuzz(file, reader, report, shards);
  return true;
}

using Key = std::tuple<std::string, std::uint64_t, std::uint64_t>;  // kernel, seed, generator version

// What came of each case; of one that came out differently the worst.
class Cases {
 public:
  explicit Cases(MergedCampaign& campaign) : campaign_(campaign) {}

  void add(const ShardPart& part) {
    check_part(part);
    CampaignOptions options;
    options.shard_index = part.campaign.shard_index, options.shard_count = part.campaign.shard_count;
    options.first_case = part.covered.first_case;
    if (part.covered.outcomes.empty()) return;
    const std::uint64_t end = options.case_number(part.covered.outcomes.size() - 1) + 1;
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

// Whether `read` gave true for one of the sources at least. Those that cannot be read are recorded by name; where none
// can, the first one's error leaves.
bool read_each(const auto& sources, Shards& shards, const auto& read) {
  std::vector<UnreadableShard> unreadable;
  std::exception_ptr first;
  bool found = false;
  const auto record = [&](const std::string& source, const char* why) {
    if (!first) first = std::current_exception();
    unreadable.push_back({source, why});
  };
  for (const std::string& source : sources) {
    try {
      found |= read(source);
    } catch (const InvalidInput& error) {
      record(source, error.what());
    } catch (const EnvironmentError& error) {
      record(source, error.what());
    }
  }
  if (first && !found) std::rethrow_exception(first);
  shards.unreadable.insert(shards.unreadable.end(), unreadable.begin(), unreadable.end());
  return found;
}

void read_folder(const std::string& folder, Shards& shards) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw InvalidInput("dir", fmt::format("'{}'", folder), "is no folder");
  if (fs::exists(fs::path(folder) / History::file_name, error)) {
    read_night(folder, shards);
    return;
  }
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") files.insert(entry.path().string());
  if (!read_each(files, shards, [&](const std::string& file) { return read_report(file, shards); }))
    throw InvalidInput("dir", fmt::format("'{}'", folder),
                       fmt::format("has neither a {} nor a report of attest fuzz --json", History::file_name));
}

}  // namespace

Shards read_shards(const std::vector<std::string>& folders) {
  Shards shards;
  read_each(folders, shards, [&](const std::string& folder) {
    read_folder(folder, shards);
    return true;
  });
  return shards;
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
  merged.unreadable = shards.unreadable;
  return merged;
}

}  // namespace attest
