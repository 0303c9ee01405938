#include "attest/problem/error.h"

#include <fmt/format.h>

#include "attest/problem/text.h"

namespace attest {
namespace {

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
    : std::invalid_argument(escaped(fmt::format("{}: {} {}", short_enough(field), short_enough(value), limit))),
      field_(escaped(field)) {}

}  // namespace attest
