// Names that somebody gives, and files and pages then show.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace attest {

/// UTF-8 without control characters, which are U+0000 to U+001F and U+007F to U+009F.
bool is_printable(std::string_view text);

/// `text` with \xNN for each byte of a control character: one line that moves no cursor, whatever a file holds.
std::string escaped(std::string_view text);

/// What is longer than `most` bytes up to there, without the half of a character, and "..." behind it.
std::string shortened(std::string_view text, std::size_t most);

}  // namespace attest
