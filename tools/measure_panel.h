// `attest measure --panel`: a fixed set of calls, counted now or read from a file.
#pragma once
#include "attest/problem/exit_code.h"
#include "flags.h"
#include "output.h"

namespace attest::tools {

ExitCode measure_panel(const Flags& flags, const Results& results);

}  // namespace attest::tools
