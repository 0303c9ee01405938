#include "attest/problem/error.h"

#include <fmt/format.h>

namespace attest {
namespace {

// what() ends at a NUL; a name or a word out of somebody's JSON may hold one.
std::string without_nul(std::string text) {
  for (std::size_t at = 0; (at = text.find('\0', at)) != std::string::npos;) text.replace(at, 1, "\\x00");
  return text;
}

// A line that a terminal can show, whatever somebody's file or flag holds.
std::string short_enough(std::string_view text) {
  constexpr std::size_t most = 200;
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // no half of a character
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace

InvalidInput::InvalidInput(std::string_view field, std::string_view value, std::string_view limit)
    : std::invalid_argument(without_nul(fmt::format("{}: {} {}", short_enough(field), short_enough(value), limit))),
      field_(without_nul(std::string(field))) {}

}  // namespace attest
