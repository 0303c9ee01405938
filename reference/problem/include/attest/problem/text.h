// Names that somebody gives, and files and pages then show.
#pragma once
#include <string_view>

namespace attest {

/// UTF-8 without control characters.
bool is_printable(std::string_view text);

}  // namespace attest
