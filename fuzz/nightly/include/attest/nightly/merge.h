// Shards of campaigns, joined case by case.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attest/fuzz/tally.h"
#include "attest/nightly/night.h"

namespace attest {

/// A stretch of one shard of a campaign, and where it is written down.
struct ShardPart {
  std::string source;  // a folder or a file
  Campaign campaign;
  Covered covered;
};

/// A way of failing that some shard listed.
struct ShardFailure {
  std::string source, check, detail, repro;
  CheckState state = CheckState::wrong;
};

/// A folder or a file of which nothing counts, and why.
struct UnreadableShard {
  std::string source, why;
};

struct Shards {
  std::vector<ShardPart> parts;
  std::vector<ShardFailure> failures;   // and regressions, of nights
  std::vector<std::string> unfinished;  // folders whose night was interrupted and has not gone on
  std::vector<UnreadableShard> unreadable;
};

/// Reads folders of `attest nightly` (every part of the newest night) or with reports of `attest fuzz --json` (every
/// *.json of that schema). A folder that has neither and a file that cannot be read are recorded by name, and the
/// others count; where there are no others, the first one's InvalidInput or EnvironmentError is thrown.
Shards read_shards(const std::vector<std::string>& folders);

/// One kernel's campaign, of all its parts together.
struct MergedCampaign {
  std::string kernel;
  std::uint64_t seed = 0, generator_version = 0;
  Tally statuses;                 // each case once
  std::uint64_t prefix = 0;       // every case below it was run
  Tally prefix_statuses;          // of those
  std::uint64_t twice = 0;        // cases that more than one part ran; counted once
  std::uint64_t disagreeing = 0;  // of these, the ones that came out differently
  std::uint64_t first_disagreeing_k = 0;
  std::vector<std::string>
      missing_shards;  // "2/4": of a number of shards that some part has, those of which none is here
};

struct Merged {
  std::vector<MergedCampaign> campaigns;
  std::vector<ShardFailure> failures;
  std::vector<std::string> unfinished;
  std::vector<UnreadableShard> unreadable;

  /// 4 before 1 before 5 before 3, which is that a shard could not be read; a case that came out differently twice is
  /// 1; 77 where no case was judged.
  ExitCode exit_code() const;
};

/// The same for any number of shards, in any order, of the same cases. Throws InvalidInput naming `shard` for a part
/// that is of more than 10^9 shards or ends beyond 10^9 cases.
Merged merge(const Shards& shards);

/// "attest/merge/1".
nlohmann::ordered_json to_json(const Merged& merged);
std::string to_text(const Merged& merged);

}  // namespace attest
