#include "attest/problem/error.h"

#include <fmt/format.h>

#include "attest/problem/text.h"

namespace attest {
namespace {

constexpr std::size_t longest = 200;

// One in quotes keeps both.
std::string shown(std::string_view value) {
  if (value.size() <= longest || !value.starts_with('\'') || !value.ends_with('\'')) return shortened(value, longest);
  return fmt::format("'{}'", shortened(value.substr(1, value.size() - 2), longest - 5));
}

}  // namespace

InvalidInput::InvalidInput(std::string_view field, std::string_view value, std::string_view limit)
    : std::invalid_argument(escaped(fmt::format("{}: {} {}", shortened(field, longest), shown(value), limit))),
      field_(escaped(field)) {}

}  // namespace attest
