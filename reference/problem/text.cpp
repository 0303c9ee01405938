#include "attest/problem/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace attest {
namespace {

/// Bytes of the control character that `text` begins with, none where it is another: one below 0x20 or DEL, two of
/// U+0080 to U+009F, which terminals obey as well.
std::size_t control_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  return byte(0) == 0xc2 && text.size() > 1 && byte(1) >= 0x80 && byte(1) < 0xa0 ? 2 : 0;
}

}  // namespace

bool is_printable(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (control_bytes(text.substr(i)) > 0) return false;
  try {
    (void)nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    return false;  // not UTF-8
  }
  return true;
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t control = control_bytes(text);
    if (control == 0) out += text[0];
    for (std::size_t i = 0; i < control; ++i) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    text.remove_prefix(std::max<std::size_t>(1, control));
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;  // within a character
  return std::string(text.substr(0, most)) + "...";
}

}  // namespace attest
