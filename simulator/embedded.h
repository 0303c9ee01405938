// The files that travel in the program (cmake/attest_embed.cmake writes the definitions).
#pragma once
#include <span>
#include <string_view>

#include "attest/problem/embedded_file.h"

namespace attest {

std::span<const EmbeddedFile> embedded_devices();
std::span<const EmbeddedFile> embedded_models();
std::span<const EmbeddedFile> embedded_measured();     // tables of simulator/measured/ that models read
std::span<const EmbeddedFile> embedded_report_page();  // the parts of `--html`, the chart library among them

/// The text of the one of `files` that has that name.
std::string_view text_of(std::span<const EmbeddedFile> files, std::string_view name);

}  // namespace attest
