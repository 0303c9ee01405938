// Text that somebody gives, and files and pages then show.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace attest {

/// Without the spaces, tabs and ends of lines around it.
std::string_view trimmed(std::string_view text);

/// Bytes of the well-formed UTF-8 character that `text`, which is not empty, begins with; 0 if none does.
std::size_t utf8_length(std::string_view text);

/// UTF-8 without control characters, which are U+0000 to U+001F and U+007F to U+009F.
bool is_printable(std::string_view text);

/// `text` with \xNN for each byte of a control character and each that is not UTF-8: one line that moves no cursor,
/// whatever a file holds.
std::string escaped(std::string_view text);

/// What is longer than `most` bytes up to there, without the half of a character, and "..." behind it.
std::string shortened(std::string_view text, std::size_t most);

/// Likewise, but with "..." in place of its middle: for names that differ at their ends too.
std::string without_middle(std::string_view text, std::size_t most);

}  // namespace attest
