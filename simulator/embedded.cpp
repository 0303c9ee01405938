#include "embedded.h"

#include <stdexcept>
#include <string>

namespace attest {

std::string_view text_of(std::span<const EmbeddedFile> files, std::string_view name) {
  for (const EmbeddedFile& file : files)
    if (file.name == name) return file.text;
  throw std::logic_error("no file '" + std::string(name) + "' travels in the program");
}

}  // namespace attest
