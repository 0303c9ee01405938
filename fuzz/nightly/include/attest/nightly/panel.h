// The calls that a night times and counts: few, of the shapes that users wait for.
#pragma once
#include <span>
#include <string_view>

#include "attest/problem/case.h"

namespace attest {

struct PanelCase {
  std::string_view name;  // of its series, so never another case's
  Case the_case;
};

/// For a device with a clock of its own: milliseconds there, minutes on a CPU.
std::span<const PanelCase> device_panel();
/// Milliseconds on a CPU.
std::span<const PanelCase> cpu_panel();

}  // namespace attest
