// The files that travel in the program (cmake/attest_embed.cmake writes the definitions).
#pragma once
#include <span>
#include <string_view>

namespace attest {

struct EmbeddedFile {
  std::string_view name;  // without its last extension
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_devices();
std::span<const EmbeddedFile> embedded_models();
std::span<const EmbeddedFile> embedded_report_page();  // the parts of `--html`, the chart library among them

}  // namespace attest
