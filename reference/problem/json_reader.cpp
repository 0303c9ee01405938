#include "attest/problem/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "attest/problem/error.h"
#include "attest/problem/text.h"

namespace attest {

std::string shown_name(std::string_view name) { return name.empty() ? "\"\"" : std::string(name.substr(0, 60)); }

std::string shown_value(const JsonReader::Json& value) {
  return value.dump(-1, ' ', false, JsonReader::Json::error_handler_t::replace).substr(0, 40);
}

std::string shown_number(std::string_view number) { return fmt::format("'{}'", shortened(number, 57)); }

void JsonReader::refuse(std::string_view field, std::string_view value, std::string_view limit) const {
  throw InvalidInput(field, value, fmt::format("{} (in {})", limit, file_));
}

bool is_beyond_float64(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc::result_out_of_range && end == text.data() + text.size();
}

std::optional<TinyNumber> tiny_number(std::string_view json) {
  std::string_view name;
  for (std::size_t at = 0, end; at < json.size(); at = end) {
    end = at + 1;
    if (json[at] == '"') {
      while (json[end] != '"') end += json[end] == '\\' ? 2 : 1;
      name = json.substr(at + 1, end++ - at - 1);
    } else if (json[at] == '-' || std::isdigit(static_cast<unsigned char>(json[at])) != 0) {
      end = std::min(json.find_first_not_of("+-.eE0123456789", at), json.size());
      const std::string_view number = json.substr(at, end - at);
      if (is_beyond_float64(number)) return TinyNumber{std::string(name), std::string(number)};
    }
  }
  return std::nullopt;
}

JsonReader::Json JsonReader::parse(std::string_view what, std::string_view text) const {
  Json json = parse_any(what, text);
  if (!json.is_object()) refuse(what, shown_value(json), "must be an object");
  return json;
}

JsonReader::Json JsonReader::parse_any(std::string_view what, std::string_view text) const {
  struct Object {
    std::set<std::string> seen;
    std::string last;
  };
  std::vector<Object> open;
  const auto path = [&] {
    std::string names;
    for (const Object& object : open) names += fmt::format("{}{}", names.empty() ? "" : ".", shown_name(object.last));
    return names;
  };
  std::string twice, last;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > deepest_json) refuse(what, fmt::format("nested {} deep", depth), "is no description");
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end && !open.empty()) open.pop_back();
    if (event == Json::parse_event_t::key) {
      open.back().last = last = parsed.get<std::string>();
      if (!open.back().seen.insert(last).second) twice = path();
    }
    return true;
  };
  if (const std::size_t end = text.find('\0'); end != std::string_view::npos)  // the library's end of a text
    refuse(what, fmt::format("{} bytes", text.size()), fmt::format("are not JSON: 0 at byte {}", end + 1));
  Json json;
  try {
    json = Json::parse(text, watch);
  } catch (const Json::exception& error) {
    const auto* at = dynamic_cast<const Json::parse_error*>(&error);
    if (at == nullptr) refuse(open.empty() ? what : path(), "its number", "is beyond 1.8e308");
    refuse(what, fmt::format("{} bytes", text.size()),
           fmt::format("are not JSON: malformed or cut off at byte {}{}", at->byte,
                       last.empty() ? "" : fmt::format(", behind '{}'", shown_name(last))));
  }
  if (!twice.empty()) refuse(twice, "given twice;", "must be given once");
  if (const auto tiny = tiny_number(text)) refuse(shown_name(tiny->name), shown_number(tiny->number), no_float64);
  return json;
}

const JsonReader::Json& JsonReader::member(const Json& object, std::string_view name, std::string_view path) const {
  const auto at = object.find(name);
  if (at == object.end()) refuse(path, "missing;", "must be given");
  return *at;
}

void JsonReader::only(const Json& object, std::string_view path, std::initializer_list<std::string_view> known) const {
  if (!object.is_object()) refuse(path, shown_value(object), "must be an object");
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      refuse(path.empty() ? shown_name(key) : fmt::format("{}.{}", path, shown_name(key)), "unknown field;",
             "remove it or correct its name");
}

std::string JsonReader::any_text(const Json& object, std::string_view name, std::string_view path) const {
  const Json& value = member(object, name, path);
  if (!value.is_string()) refuse(path, shown_value(value), "must be a string");
  return value.get<std::string>();
}

std::string JsonReader::text(const Json& object, std::string_view name, std::string_view path) const {
  const Json& value = member(object, name, path);
  if (!value.is_string()) refuse(path, shown_value(value), "must be a string");
  if (value.get_ref<const std::string&>().empty()) refuse(path, "\"\"", "must not be empty");
  if (!is_printable(value.get_ref<const std::string&>()))
    refuse(path, shown_value(value), "must be without control characters");
  return value.get<std::string>();
}

bool JsonReader::boolean(const Json& object, std::string_view name, std::string_view path) const {
  const Json& value = member(object, name, path);
  if (!value.is_boolean()) refuse(path, shown_value(value), "must be true or false");
  return value.get<bool>();
}

double JsonReader::number(const Json& object, std::string_view name, std::string_view path, double low,
                          double high) const {
  return number(member(object, name, path), path, low, high);
}

double JsonReader::number(const Json& value, std::string_view path, double low, double high) const {
  if (!value.is_number()) refuse(path, shown_value(value), "must be a number");
  const double number = value.get<double>();
  if (!(number >= low && number <= high))
    refuse(path, shown_value(value), fmt::format("is outside {} to {}", low, high));
  return number;
}

std::int64_t JsonReader::integer(const Json& object, std::string_view name, std::string_view path, double low,
                                 double high) const {
  const double value = number(object, name, path, low, high);
  if (value != std::floor(value)) refuse(path, shown_value(*object.find(name)), "must be a whole number");
  return static_cast<std::int64_t>(value);
}

std::uint64_t JsonReader::unsigned_integer(const Json& object, std::string_view name, std::string_view path) const {
  const Json& value = member(object, name, path);
  if (!value.is_number_unsigned()) refuse(path, shown_value(value), "must be a whole number from 0 to 2^64 - 1");
  return value.get<std::uint64_t>();
}

std::vector<double> JsonReader::numbers(const Json& object, std::string_view name, std::string_view path, double low,
                                        double high) const {
  const Json& values = member(object, name, path);
  if (!values.is_array() || values.empty()) refuse(path, shown_value(values), "must be a list of at least one number");
  std::vector<double> list;
  for (const Json& value : values) list.push_back(number(value, fmt::format("{}[{}]", path, list.size()), low, high));
  return list;
}

bool is_path(std::string_view name) { return name.ends_with(".json") || name.find('/') != std::string_view::npos; }

}  // namespace attest
