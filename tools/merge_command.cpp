// attest merge: shards of a campaign, joined.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "attest/nightly/history.h"
#include "attest/nightly/merge.h"
#include "commands.h"
#include "output.h"

namespace attest::tools {
namespace {

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const Shards shards = read_shards(flags.positional());
  std::error_code error;
  for (const std::string& folder : flags.positional())
    if (std::filesystem::exists(std::filesystem::path(folder) / History::file_name, error))
      results.refuse_night_files("dir", folder);
  for (const ShardPart& part : shards.parts) results.refuse_same_file("dir", part.source);
  for (const UnreadableShard& shard : shards.unreadable) results.refuse_same_file("dir", shard.source);
  const Merged merged = merge(shards);
  results.finish("merge", to_json(merged), to_text(merged));
  return merged.exit_code();
}

}  // namespace

Command merge_command() {
  return {
      "merge", "Join the shards of a campaign",
      "  attest merge shard-*\n"
      "Each DIR is one of attest nightly, or holds reports of attest fuzz --json. Whatever shards are there, each "
      "case\n"
      "counts once, and the whole prefix that was covered is told. What cannot be read is named, and the exit is 3.",
      [](Flags& flags) { flags.positional("DIR", "A shard's folder", 100'000); }, run};
}

}  // namespace attest::tools
