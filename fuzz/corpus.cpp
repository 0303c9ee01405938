#include "attest/fuzz/corpus.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "attest/fuzz/generators.h"
#include "attest/fuzz/properties.h"
#include "attest/fuzz/tally.h"
#include "attest/problem/error.h"
#include "attest/problem/file.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view schema_prefix = "attest/corpus/";
constexpr int schema_version = 1;
constexpr std::size_t largest_file = std::size_t{1} << 24;

// Every refusal names the file, so the field of the file stands in the value.
[[noreturn]] void refuse(std::string_view file, std::string_view field, std::string_view value,
                         std::string_view limit) {
  throw InvalidInput("corpus", fmt::format("'{}'", file), fmt::format("{}: {} {}", field, value, limit));
}

Json parse(std::string_view file, std::string_view text) {
  std::vector<std::set<std::string>> open;  // keys of the objects that are open
  constexpr int deepest = 8;                // the library's own printing recurses
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > deepest) refuse(file, "file", fmt::format("nested {} deep", depth), "is no corpus entry");
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      refuse(file, parsed.get<std::string>(), "given twice,", "must be given once");
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    refuse(file, "file", fmt::format("{} bytes", text.size()),
           fmt::format("are not JSON: malformed at byte {}", error.byte));
  } catch (const Json::out_of_range&) {
    refuse(file, "file", fmt::format("{} bytes", text.size()), "hold a number beyond float64");
  }
}

std::string brief(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t longest = 60;
  return text.size() > longest ? text.substr(0, longest - 3) + "..." : text;
}

std::string text_field(std::string_view file, const Json& json, const char* field) {
  if (!json.contains(field)) refuse(file, field, "nothing", "is given; it must be");
  if (!json.at(field).is_string()) refuse(file, field, brief(json.at(field)), "is no string");
  return json.at(field).get<std::string>();
}

void check_schema(std::string_view file, const Json& json) {
  if (!json.is_object()) refuse(file, "file", brief(json), "is no object");
  const std::string schema = text_field(file, json, "schema");
  if (schema != fmt::format("{}{}", schema_prefix, schema_version))
    refuse(file, "schema", brief(schema),
           fmt::format("is not '{}{}', the newest that this version reads", schema_prefix, schema_version));
  for (const auto& [field, value] : json.items()) {
    static const std::set<std::string> known = {"schema", "property", "status",           "kernel",
                                                "found",  "case",     "generator_version"};
    if (!known.contains(field)) refuse(file, field, brief(value), "is no field of a corpus entry");
  }
}

std::uint64_t fnv1a(std::string_view bytes) {  // Fowler, Noll, Vo: 64 bits
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  return hash;
}

}  // namespace

Json to_json(const CorpusEntry& entry) {
  Json json;
  json["schema"] = fmt::format("{}{}", schema_prefix, schema_version);
  json["property"] = entry.property;
  json["status"] = to_string(entry.status);
  json["kernel"] = entry.kernel;
  json["generator_version"] = entry.generator_version;
  json["found"] = entry.found;
  json["case"] = to_json(entry.the_case);
  return json;
}

CorpusEntry corpus_entry_from_json(std::string_view file, std::string_view text) {
  const Json json = parse(file, text);
  check_schema(file, json);
  CorpusEntry entry;
  entry.property = text_field(file, json, "property");
  entry.kernel = text_field(file, json, "kernel");
  entry.found = text_field(file, json, "found");
  const std::string status = text_field(file, json, "status");
  const auto* const known =
      std::find_if(std::begin(all_statuses), std::end(all_statuses), [&](Status s) { return to_string(s) == status; });
  if (known == std::end(all_statuses)) refuse(file, "status", brief(status), "is no status of a verdict");
  entry.status = *known;
  const Json& version = json.contains("generator_version") ? json.at("generator_version") : Json();
  if (!version.is_number_unsigned()) refuse(file, "generator_version", brief(version), "is no integer from 0");
  entry.generator_version = version.get<std::uint64_t>();
  if (entry.generator_version > generator_version)
    refuse(file, "generator_version", brief(version),
           fmt::format("is newer than {}, this version's", generator_version));
  if (!json.contains("case")) refuse(file, "case", "nothing", "is given; it must be");
  try {
    property_named(entry.property);
    entry.the_case = case_from_json(json.at("case"));
  } catch (const InvalidInput& error) {
    throw InvalidInput("corpus", fmt::format("'{}'", file), error.what());
  }
  return entry;
}

std::string corpus_file_name(const CorpusEntry& entry) {
  return fmt::format("{:016x}.json", fnv1a(to_json(entry.the_case).dump() + entry.property));
}

std::uint64_t corpus_shard(std::string_view name, std::uint64_t count) { return fnv1a(name) % count; }

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

Corpus::Corpus(fs::path folder) : folder_(std::move(folder)) {
  if (folder_.empty()) throw InvalidInput("corpus", "''", "is no folder");
  std::error_code error;
  if (fs::exists(folder_, error) && !fs::is_directory(folder_, error))
    throw InvalidInput("corpus", fmt::format("'{}'", folder_.string()), "is no folder");
  error.clear();
  fs::create_directories(folder_, error);
  if (error) throw EnvironmentError(fmt::format("'{}': cannot be made: {}", folder_.string(), error.message()));
  std::vector<fs::path> paths;
  fs::directory_iterator end, at(folder_, error);
  for (; !error && at != end; at.increment(error))
    if (at->path().extension() == ".json") paths.push_back(at->path());
  if (error) throw EnvironmentError(fmt::format("'{}': cannot be read: {}", folder_.string(), error.message()));
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths)
    files_.push_back(
        {path.filename().string(), corpus_entry_from_json(path.string(), read_file("corpus", path, largest_file))});
  expect_writable(folder_ / "probe");
}

std::optional<std::string> Corpus::add(const CorpusEntry& entry) const {
  std::string name = corpus_file_name(entry);
  if (fs::exists(folder_ / name)) return std::nullopt;
  write_file(folder_ / name, to_json(entry).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return name;
}

void Corpus::remove(const std::string& name) const {
  std::error_code ignored;  // somebody else's removal is as good
  fs::remove(folder_ / name, ignored);
}

}  // namespace attest
