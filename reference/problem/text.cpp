#include "attest/problem/text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace attest {

bool is_printable(std::string_view text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), is_control)) return false;
  try {
    (void)nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    return false;  // not UTF-8
  }
  return true;
}

}  // namespace attest
