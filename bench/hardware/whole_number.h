// Numbers on a program's command line.
#pragma once
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace attest::hardware {

/// Throws std::runtime_error with the name, the text and the limits unless it is one of `least` to `most`.
inline std::int64_t whole_number(std::string_view text, const char* name, std::int64_t least, std::int64_t most) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < least || n > most)
    throw std::runtime_error(std::string(name) + ": " + std::string(text) + " is no whole number of " +
                             std::to_string(least) + " to " + std::to_string(most));
  return n;
}

}  // namespace attest::hardware
