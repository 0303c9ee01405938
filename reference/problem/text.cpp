#include "attest/problem/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace attest {
namespace {

/// Bytes of the character that `text` begins with, 0 where it is a control character or no UTF-8. Terminals obey
/// control characters: below 0x20, DEL, U+0080 to U+009F, and some of them the bytes 0x80 to 0x9f alone as well.
std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = utf8_length(text);
  const bool control =
      length == 1 ? byte(0) < 0x20 || byte(0) == 0x7f : length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0;
  return control ? 0 : length;
}

/// Whether a character that begins before `at` reaches there.
bool is_within_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view white = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(white), text.size()));
  return text.substr(0, text.find_last_not_of(white) + 1);
}

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0, surrogate = first == 0xED && byte(1) >= 0xA0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90, beyond = first == 0xF4 && byte(1) >= 0x90;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool printable = printable_length(text) > 0;
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, utf8_length(text)));
    if (printable) out += character;
    for (std::size_t i = 0; !printable && i < character.size(); ++i)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(character[i]));
    text.remove_prefix(character.size());
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && is_within_character(text, most)) --most;
  return std::string(text.substr(0, most)) + "...";
}

std::string without_middle(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t rest = text.size() - most / 2;
  while (is_within_character(text, rest)) ++rest;
  return shortened(text, most - most / 2) + std::string(text.substr(rest));
}

}  // namespace attest
