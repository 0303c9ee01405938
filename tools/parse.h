// Text from a command line into numbers, strictly: nothing before, nothing after, nothing that does not fit.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attest::tools {

/// `text` in single quotes with control characters escaped, cut to 60 characters: fit for an error of one line.
std::string in_quotes(std::string_view text);

/// An integer from `low` to `high`, in decimal. Throws InvalidInput(field, ...) otherwise, as all of these do.
std::int64_t parse_integer(std::string_view field, std::string_view text, std::int64_t low, std::int64_t high);

/// An integer from 0 to 2^64 - 1, in decimal.
std::uint64_t parse_unsigned(std::string_view field, std::string_view text);

/// A finite number.
double parse_number(std::string_view field, std::string_view text);

/// "500ms", "60s", "30m", "8h", or a bare number of seconds: more than 0 and at most a week, in seconds.
double parse_seconds(std::string_view field, std::string_view text);

/// "L,R": two integers with one comma between them.
std::pair<std::int64_t, std::int64_t> parse_pair(std::string_view field, std::string_view text);

/// "A,B,C": one integer or more, commas between them.
std::vector<std::int64_t> parse_integers(std::string_view field, std::string_view text);

/// "I/N": shard I of N, from 0 to N - 1.
std::pair<std::int64_t, std::int64_t> parse_shard(std::string_view field, std::string_view text);

/// The one of `names` that somebody who typed `word` most likely meant; empty if none is near.
std::string_view nearest(std::string_view word, std::span<const std::string> names);

/// "; did you mean X?" for nearest(), or "".
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

}  // namespace attest::tools
