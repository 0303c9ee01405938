#include "output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "attest/nightly/nightly.h"
#include "attest/problem/error.h"
#include "kernel_flag.h"
#include "parse.h"
#include "paths.h"
#include "unfinished.h"

namespace attest::tools {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const fs::path& path, std::string_view why) {
  throw EnvironmentError(fmt::format("{}: cannot be written: {}", in_quotes(path.string()), why));
}

fs::path beside(const fs::path& path) {
  fs::path name = path;
  name += fmt::format(".part{}", ::getpid());
  return name;
}

// A signal deletes it from here on.
int create(const fs::path& path) {
  const HoldSignals hold;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor >= 0) list_unfinished(path);
  return descriptor;
}

void discard(const fs::path& path) {
  const HoldSignals hold;
  ::unlink(path.c_str());
  delist_unfinished(path);
}

void write_all(int descriptor, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(path, std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

// The flags that may name a file to read.
const std::vector<std::string> input_flags = {
    "--case",      "--model",        "--device",    "--plan",      "--q",         "--k",         "--v",    "--dout",
    "--bias-file", "--alibi-slopes", "--sink-file", "--q-descale", "--k-descale", "--v-descale", "--from", "--against"};

// Closes, and deletes the file unless it was kept.
struct Partial {
  fs::path path;
  int descriptor;
  bool keep = false;
  Partial(fs::path p, int d) : path(std::move(p)), descriptor(d) {}
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;
  ~Partial() {
    if (descriptor >= 0) ::close(descriptor);
    if (!keep && descriptor >= 0) discard(path);
  }
};

}  // namespace

OutputFile::OutputFile(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  const auto is_in_place = [&] {
    const fs::file_status status = fs::status(path_, error);
    return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
  };
  // Renaming would replace a link, also one that points at nothing yet; the kernel follows at most 40 as well. What a
  // link of /proc to a pipe says is no path.
  for (int links = 0; links < 40 && !is_in_place() && fs::is_symlink(path_, error); ++links)
    path_ = path_.parent_path() / fs::read_symlink(path_, error);
  in_place_ = is_in_place();
  if (!in_place_ && fs::is_symlink(path_, error)) cannot_write(path_, std::strerror(ELOOP));
  const fs::file_status status = fs::status(path_, error);
  if (fs::is_directory(status)) cannot_write(path_, "it is a folder");
  if (fs::exists(status) && ::access(path_.c_str(), W_OK) != 0) cannot_write(path_, std::strerror(errno));
  if (in_place_) return;
  // The only sure test of a folder is to make a file in it.
  const Partial probe(beside(path_), create(beside(path_)));
  if (probe.descriptor < 0) cannot_write(path_, std::strerror(errno));
}

OutputFile::Staged OutputFile::stage(std::string_view bytes) const {
  const fs::path name = in_place_ ? path_ : beside(path_);
  Partial file(name, in_place_ ? ::open(name.c_str(), O_WRONLY | O_CLOEXEC) : create(name));
  file.keep = in_place_;
  if (file.descriptor < 0) cannot_write(path_, std::strerror(errno));
  write_all(file.descriptor, bytes, path_);
  if (in_place_) return {{}, path_};
  if (::fsync(file.descriptor) != 0) cannot_write(path_, std::strerror(errno));
  file.keep = true;
  return {name, path_};
}

void OutputFile::Staged::commit() {
  if (from_.empty()) return;
  const HoldSignals hold;
  if (::rename(from_.c_str(), to_.c_str()) != 0) cannot_write(to_, std::strerror(errno));
  delist_unfinished(from_);
  from_.clear();
}

OutputFile::Staged::~Staged() {
  if (!from_.empty()) discard(from_);
}

void OutputFile::write(std::string_view bytes) const { stage(bytes).commit(); }

void refuse_replacing(const Flags& flags, std::string_view field, const fs::path& path) {
  const auto refuse = [&](const std::string& flag, const std::string& input) {
    std::error_code error;  // a case may be given as JSON, which is no name of a file
    if (fs::is_regular_file(input, error) && are_one(input, path))
      throw InvalidInput(field, in_quotes(path.string()), fmt::format("is read for {}, and would be replaced", flag));
  };
  std::error_code error;
  if (are_one("/proc/self/exe", path))
    throw InvalidInput(field, in_quotes(path.string()), "is this program, and would be replaced");
  if (fs::is_regular_file("/proc/self/fd/1", error) && are_one("/proc/self/fd/1", path))
    throw InvalidInput(field, in_quotes(path.string()), "is where stdout goes as well; one would replace the other");
  for (const std::string& flag : flags.given_of(input_flags)) refuse(flag, *flags.text(flag));
  for (const std::string& flag : flags.given_of({"--sweep"})) {  // of plans or devices, which may be files
    std::istringstream values(flags.text(flag)->substr(flags.text(flag)->find('=') + 1));
    for (std::string value; std::getline(values, value, ',');) refuse(flag, value);
  }
  for (const std::string& flag : flags.given_of({"--kernel"}))
    for (const std::string& word : flags.texts(flag)) refuse(flag, kernel_file(word)), refuse(flag, code_file(word));
  for (const std::string& flag : flags.given_of({"--corpus"}))
    if (are_one(*flags.text(flag), fs::absolute(path).parent_path()))
      throw InvalidInput(field, in_quotes(path.string()), fmt::format("is in the folder of {}, which is read", flag));
}

std::optional<OutputFile> output_file(const Flags& flags, const std::string& flag, std::string name_in_folder) {
  const auto given = flags.text(flag);
  if (!given) return std::nullopt;
  if (given->empty()) throw InvalidInput(field_of(flag), "''", "is no file");
  if (*given == "-") throw InvalidInput(field_of(flag), "'-'", "is no file; only --json writes to stdout");
  std::error_code error;
  const bool in_folder = !name_in_folder.empty() && fs::is_directory(*given, error);
  std::ranges::replace(name_in_folder, '/', '_');
  const fs::path path = in_folder ? fs::path(*given) / name_in_folder : fs::path(*given);
  refuse_replacing(flags, field_of(flag), path);
  return OutputFile(path);
}

void refuse_same_file(std::string_view field, const fs::path& path, std::string_view flag, const fs::path& other) {
  if (!are_one(path, other)) return;
  throw InvalidInput(field, in_quotes(path.string()),
                     fmt::format("is the file of {} as well; one would replace the other", flag));
}

void Results::declare(Flags& flags) {
  flags.group("Results");
  flags.value("--json", "FILE|-", "Write one JSON object to FILE, or alone to stdout");
}

Results::Results(const Flags& flags) {
  const auto target = flags.text("--json");
  if (!target) return;
  if (target->empty()) throw InvalidInput("json", "''", "is neither a file nor -");
  json_on_stdout_ = *target == "-";
  if (json_on_stdout_) return;
  refuse_replacing(flags, "json", *target);
  file_.emplace(*target);
}

void Results::refuse_same_file(std::string_view field, const fs::path& other) const {
  if (file_) tools::refuse_same_file(field, other, "--json", file_->path());
}

void Results::refuse_night_files(std::string_view field, const fs::path& folder) const {
  for (const char* name :
       {"history.sqlite", "history.sqlite-wal", "history.sqlite-shm", "lock", night_page, night_junit, night_json})
    refuse_same_file(field, folder / name);
  std::error_code error;  // a first night has no corpus yet
  for (const auto& entry : fs::directory_iterator(folder / night_corpus, error)) refuse_same_file(field, entry.path());
}

void Results::finish(std::string_view command, const nlohmann::ordered_json& json, std::string_view text,
                     std::vector<OutputFile::Staged> files) const {
  nlohmann::ordered_json whole = {{"schema", fmt::format("attest/{}/1", command)}};
  whole.update(json);
  // Bytes from a user's file name may be no UTF-8; a report is worth more than its exact spelling.
  const std::string dump = whole.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const std::string_view out = json_on_stdout_ ? std::string_view(dump) : text;
  std::fwrite(out.data(), 1, out.size(), stdout);  // first: where the disk is full by now this is what is left
  std::fflush(stdout);
  if (file_) files.push_back(file_->stage(dump));
  const HoldSignals together;
  for (OutputFile::Staged& file : files) file.commit();
}

}  // namespace attest::tools
