// The files that travel in the program (cmake/attest_embed.cmake writes the definitions).
#pragma once
#include <span>

#include "attest/problem/embedded_file.h"

namespace attest {

std::span<const EmbeddedFile> embedded_devices();
std::span<const EmbeddedFile> embedded_models();
std::span<const EmbeddedFile> embedded_registers();      // of gpu/sm80, as compiled
std::span<const EmbeddedFile> embedded_registers_fa2();  // of FlashAttention 2 in a wheel of PyTorch
std::span<const EmbeddedFile> embedded_cta_leads();
std::span<const EmbeddedFile> embedded_spill_traces();
std::span<const EmbeddedFile> embedded_unseen_copies();
std::span<const EmbeddedFile> embedded_report_page();  // the parts of `--html`, the chart library among them

}  // namespace attest
