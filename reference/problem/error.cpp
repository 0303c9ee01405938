#include "attest/problem/error.h"

#include <fmt/format.h>

#include "attest/problem/text.h"

namespace attest {
namespace {

constexpr std::size_t longest = 200;

}  // namespace

InvalidInput::InvalidInput(std::string_view field, std::string_view value, std::string_view limit)
    : std::invalid_argument(
          escaped(fmt::format("{}: {} {}", shortened(field, longest), shortened(value, longest), limit))),
      field_(escaped(field)) {}

}  // namespace attest
