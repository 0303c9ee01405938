#include "parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "attest/problem/error.h"
#include "attest/problem/json_reader.h"
#include "attest/problem/text.h"

namespace attest::tools {
namespace {

// from_chars over all of `text`: no leading space, no '+', no trailing text, no silent clamp.
template <class T>
std::errc parse_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return error;
  return end == text.data() + text.size() ? std::errc() : std::errc::invalid_argument;
}

// The optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours cost 1 each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::move(above);
    above = row;
  }
  return above[b.size()];
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  return fmt::format("'{}'", escaped(shortened(text, longest)));
}

std::int64_t parse_integer(std::string_view field, std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const std::errc error = parse_all(text, value);
  if (error == std::errc::invalid_argument)
    throw InvalidInput(field, in_quotes(text), fmt::format("is not an integer from {} to {}", low, high));
  if (error != std::errc() || value < low || value > high)
    throw InvalidInput(field, text, fmt::format("is outside {} to {}", low, high));
  return value;
}

std::uint64_t parse_unsigned(std::string_view field, std::string_view text) {
  std::uint64_t value = 0;
  if (parse_all(text, value) != std::errc())
    throw InvalidInput(field, in_quotes(text), fmt::format("is not an integer from 0 to {}", UINT64_MAX));
  return value;
}

double parse_number(std::string_view field, std::string_view text) {
  double value = 0;
  const std::errc error = parse_all(text, value);
  if (error == std::errc::result_out_of_range) throw InvalidInput(field, in_quotes(text), no_float64);
  if (error != std::errc() || !std::isfinite(value))
    throw InvalidInput(field, in_quotes(text), "is not a finite number");
  return value;
}

double parse_seconds(std::string_view field, std::string_view text) {
  struct Unit {
    std::string_view suffix;
    double seconds;
  };
  constexpr Unit units[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};  // "ms" before "s"
  constexpr double longest = 7 * 24 * 3600.0;
  double unit = 1;
  std::string_view number = text;
  for (const Unit& u : units)
    if (text.ends_with(u.suffix)) {
      unit = u.seconds;
      number.remove_suffix(u.suffix.size());
      break;
    }
  double value = 0;
  if (parse_all(number, value) != std::errc() || !(value * unit > 0 && value * unit <= longest))
    throw InvalidInput(field, in_quotes(text),
                       "is not a time such as 500ms, 60s, 30m or 8h, more than 0 and at most 168h");
  return value * unit;
}

std::pair<std::int64_t, std::int64_t> parse_pair(std::string_view field, std::string_view text) {
  const std::size_t comma = text.find(',');
  std::pair<std::int64_t, std::int64_t> pair;
  if (comma == std::string_view::npos || parse_all(text.substr(0, comma), pair.first) != std::errc() ||
      parse_all(text.substr(comma + 1), pair.second) != std::errc())
    throw InvalidInput(field, in_quotes(text), "is not two integers of 64 bits with a comma between, such as 128,0");
  return pair;
}

std::vector<std::int64_t> parse_integers(std::string_view field, std::string_view text) {
  std::vector<std::int64_t> values;
  for (std::string_view rest = text;; rest = rest.substr(rest.find(',') + 1)) {
    const std::string_view word = rest.substr(0, rest.find(','));
    if (parse_all(word, values.emplace_back()) != std::errc())
      throw InvalidInput(field, in_quotes(text),
                         "is not a list of integers of 64 bits with commas between, such as 64,0,3");
    if (word.size() == rest.size()) return values;
  }
}

std::pair<std::int64_t, std::int64_t> parse_shard(std::string_view field, std::string_view text) {
  const std::size_t slash = text.find('/');
  std::pair<std::int64_t, std::int64_t> shard;
  if (slash == std::string_view::npos || parse_all(text.substr(0, slash), shard.first) != std::errc() ||
      parse_all(text.substr(slash + 1), shard.second) != std::errc() || shard.first < 0 || shard.first >= shard.second)
    throw InvalidInput(field, in_quotes(text), "is not I/N with 0 <= I < N, such as 0/4");
  return shard;
}

std::string_view nearest(std::string_view word, std::span<const std::string> names) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  const auto lower = [](std::string_view text) {
    std::string letters(text);
    for (char& c : letters) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return letters;
  };
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(lower(word), lower(name));
    if (distance < best_distance && distance < std::max(word.size(), name.size())) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> names) {
  const std::string_view name = nearest(word, names);
  return name.empty() ? std::string() : fmt::format("; did you mean {}?", name);
}

}  // namespace attest::tools
