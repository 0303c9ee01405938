// Strict reading of a JSON description: what is missing, unknown, mistyped or out of range is refused with the field,
// the value, the limit and the file.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

class JsonReader {
 public:
  using Json = nlohmann::ordered_json;

  explicit JsonReader(std::string_view file) : file_(file) {}

  /// Parses `text`, a description of a `what`; refuses malformed or cut-off text and a key that is given twice, of
  /// which nlohmann would keep the last.
  Json parse(std::string_view what, std::string_view text) const;
  /// The same of what may be no object.
  Json parse_any(std::string_view what, std::string_view text) const;

  [[noreturn]] void refuse(std::string_view field, std::string_view value, std::string_view limit) const;
  const Json& member(const Json& object, std::string_view name, std::string_view path) const;
  /// `object` is an object and has none but the known keys.
  void only(const Json& object, std::string_view path, std::initializer_list<std::string_view> known) const;
  std::string text(const Json& object, std::string_view name, std::string_view path) const;
  /// Whatever characters are in it, or none.
  std::string any_text(const Json& object, std::string_view name, std::string_view path) const;
  bool boolean(const Json& object, std::string_view name, std::string_view path) const;
  double number(const Json& object, std::string_view name, std::string_view path, double low, double high) const;
  std::int64_t integer(const Json& object, std::string_view name, std::string_view path, double low, double high) const;
  std::uint64_t unsigned_integer(const Json& object, std::string_view name, std::string_view path) const;
  /// A list of at least one number.
  std::vector<double> numbers(const Json& object, std::string_view name, std::string_view path, double low,
                              double high) const;

 private:
  double number(const Json& value, std::string_view path, double low, double high) const;

  std::string_view file_;
};

/// Levels of objects and lists that JSON may have here: the library's own printing recurses.
inline constexpr int deepest_json = 16;

/// More than any description of a device or a model has.
inline constexpr std::size_t largest_description_bytes = 1u << 20;

/// A name from a file as a message shows it: short, and never nothing.
std::string shown_name(std::string_view name);

/// A number as it is written, as a message shows it.
std::string shown_number(std::string_view number);

/// Whether `text` is a number too large for float64, or too near to 0.
bool is_beyond_float64(std::string_view text);
inline constexpr std::string_view no_float64 = "is no number of float64: 0, or 4.9e-324 to 1.8e308 in magnitude";

struct TinyNumber {
  std::string name, number;
};
/// A number that is not 0 and that float64 takes for 0, with the name that stands before it, in a text that is JSON.
std::optional<TinyNumber> tiny_number(std::string_view json);

/// A value as a message shows it: short, and what is not UTF-8 in it replaced.
std::string shown_value(const JsonReader::Json& value);

/// A name, or a path: what ends in .json or has a '/'.
bool is_path(std::string_view name_or_path);

}  // namespace attest
