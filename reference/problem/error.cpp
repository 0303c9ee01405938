#include "attest/problem/error.h"

#include <fmt/format.h>

namespace attest {

InvalidInput::InvalidInput(std::string_view field, std::string_view value, std::string_view limit)
    : std::invalid_argument(fmt::format("{}: {} {}", field, value, limit)), field_(field) {}

}  // namespace attest
