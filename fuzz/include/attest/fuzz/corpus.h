// Failures that were seen once, a file each in a folder, put to the kernel again before anything else.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attest/problem/case.h"
#include "attest/reference/compare.h"

namespace attest {

/// What failed, and when it was found. The case and the property are what a replay runs; the rest is for a reader.
struct CorpusEntry {
  Case the_case;
  std::string property;
  std::string kernel;  // that failed
  Status status = Status::wrong_values;
  std::uint64_t generator_version = 0;
  std::string found;  // UTC, "2026-01-31T23:59:59Z"

  friend bool operator==(const CorpusEntry&, const CorpusEntry&) = default;
};

/// "attest/corpus/1".
nlohmann::ordered_json to_json(const CorpusEntry& entry);

/// Reads what to_json wrote. Throws InvalidInput naming `file` and the field, value and limit: no JSON, a field
/// unknown, mistyped or missing, another schema, a newer generator, a property that this version has not, no valid
/// case.
CorpusEntry corpus_entry_from_json(std::string_view file, std::string_view text);

/// "<16 hex digits>.json": a hash (FNV-1a, 64 bits) of the case and the property in canonical JSON, so that the same
/// failure has the same name wherever and whenever it is found.
std::string corpus_file_name(const CorpusEntry& entry);

/// The time of day as an entry's `found`.
std::string utc_now();

class Corpus {
 public:
  struct File {
    std::string name;
    CorpusEntry entry;
  };

  /// Makes the folder if there is none and reads every *.json in it, by name. Throws InvalidInput as
  /// corpus_entry_from_json does, and EnvironmentError if the folder cannot be read or written.
  explicit Corpus(std::filesystem::path folder);

  /// As read, in the order of names; add() does not change them.
  const std::vector<File>& files() const { return files_; }

  /// Writes the entry whole or not at all, unless its file is there already. Its name if it was new.
  std::optional<std::string> add(const CorpusEntry& entry) const;
  /// Takes away what add() added.
  void remove(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  std::vector<File> files_;
};

/// Which shard of `count` replays the file of this name: shards that read the folder while others add to it agree.
std::uint64_t corpus_shard(std::string_view name, std::uint64_t count);

}  // namespace attest
