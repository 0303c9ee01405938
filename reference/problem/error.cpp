#include "attest/problem/error.h"

#include <fmt/format.h>

namespace attest {
namespace {

// what() ends at a NUL; a name or a word out of somebody's JSON may hold one.
std::string without_nul(std::string text) {
  for (std::size_t at = 0; (at = text.find('\0', at)) != std::string::npos;) text.replace(at, 1, "\\x00");
  return text;
}

}  // namespace

InvalidInput::InvalidInput(std::string_view field, std::string_view value, std::string_view limit)
    : std::invalid_argument(without_nul(fmt::format("{}: {} {}", field, value, limit))),
      field_(without_nul(std::string(field))) {}

}  // namespace attest
