// A file that travels in the program (cmake/attest_embed.cmake writes the definitions).
#pragma once
#include <span>
#include <string_view>

namespace attest {

struct EmbeddedFile {
  std::string_view name;  // without its last extension
  std::string_view text;
};

}  // namespace attest
