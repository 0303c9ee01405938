#include "attest/fuzz/xml.h"

#include <fmt/format.h>

#include <algorithm>

namespace attest {
namespace {

// Length of the well-formed UTF-8 sequence that begins here; 0 if none does.
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

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, length);
    const auto c = static_cast<unsigned char>(text[0]);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\n' || c == '\t')
      out += fmt::format("&#{};", c);
    else if (length == 0 || c < 0x20 || c == 0x7F || sequence == "\xEF\xBF\xBE" || sequence == "\xEF\xBF\xBF")
      out += '?';
    else
      out += sequence;
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

}  // namespace attest
