// Text inside XML and HTML.
#pragma once
#include <string>
#include <string_view>

namespace attest {

/// As text or as the value of an attribute, whatever bytes came in: what XML 1.0 cannot hold becomes '?'.
std::string xml_escaped(std::string_view text);

}  // namespace attest
