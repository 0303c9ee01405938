#include "attest/fuzz/xml.h"

#include <fmt/format.h>

#include <algorithm>

#include "attest/problem/text.h"

namespace attest {
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
