// Where results go. A file is checked before the work that fills it and appears whole or not at all.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

namespace attest::tools {

/// A file to be written later. Nothing is left behind by a run that is killed before write().
class OutputFile {
 public:
  /// Throws EnvironmentError if `path` cannot be written: no such folder, no permission, a folder itself.
  explicit OutputFile(std::filesystem::path path);
  const std::filesystem::path& path() const { return path_; }

  /// Writes beside the file and renames, so a reader sees the old contents or the new ones. Throws EnvironmentError.
  void write(std::string_view bytes) const;

  /// write() in two steps, for files that belong together: what stage() wrote beside the file, commit() renames.
  /// Without commit() it is deleted with the result.
  class Staged {
   public:
    Staged(std::filesystem::path from, std::filesystem::path to) : from_(std::move(from)), to_(std::move(to)) {}
    Staged(Staged&& other) noexcept : from_(std::move(other.from_)), to_(std::move(other.to_)) { other.from_.clear(); }
    Staged(const Staged&) = delete;
    Staged& operator=(const Staged&) = delete;
    Staged& operator=(Staged&&) = delete;
    ~Staged();
    void commit();

   private:
    std::filesystem::path from_, to_;  // from_ is empty once there is nothing left to rename
  };
  Staged stage(std::string_view bytes) const;

 private:
  std::filesystem::path path_;
  bool in_place_ = false;  // a pipe or a device: there is nothing to rename over
};

/// Throws InvalidInput naming `field` if `path` is a file that another flag gives as an input, is in the folder of
/// --corpus, or is this program or the file that stdout goes to.
void refuse_replacing(const Flags& flags, std::string_view field, const std::filesystem::path& path);

/// The file that `flag` names, or `name_in_folder`, where one is given, each '/' of it as '_', in the folder that it
/// names; none if the flag was not given. Throws InvalidInput for what is no file, "-" too, and for an input, and as
/// OutputFile does.
std::optional<OutputFile> output_file(const Flags& flags, const std::string& flag, std::string name_in_folder = "");

/// Throws InvalidInput naming `field` if `path`, which it gives, and `other`, the file of `flag`, are one.
void refuse_same_file(std::string_view field, const std::filesystem::path& path, std::string_view flag,
                      const std::filesystem::path& other);

/// What a command found: for a person on stdout, and for a program through --json.
class Results {
 public:
  static void declare(Flags& flags);
  /// Opens what --json names; throws as OutputFile does.
  explicit Results(const Flags& flags);

  /// Prints `text`, or the JSON alone where --json is "-"; `schema` stands first, as "attest/<command>/1".
  /// `files` belong to it: they and the file of --json appear together, or none does.
  void finish(std::string_view command, const nlohmann::ordered_json& json, std::string_view text,
              std::vector<OutputFile::Staged> files = {}) const;
  bool json_on_stdout() const { return json_on_stdout_; }
  /// The file of --json, for the list of what was written; empty if none.
  std::string json_path() const { return file_ ? file_->path().string() : ""; }
  /// Throws InvalidInput naming `field` if `other` is the file of --json too.
  void refuse_same_file(std::string_view field, const std::filesystem::path& other) const;
  /// The same of everything that attest nightly keeps in `folder`: history, lock, reports and corpus.
  void refuse_night_files(std::string_view field, const std::filesystem::path& folder) const;

 private:
  bool json_on_stdout_ = false;
  std::optional<OutputFile> file_;
};

}  // namespace attest::tools
