// The machine code in a file: an object with code for GPUs, or what somebody has disassembled.
#pragma once
#include <string>
#include <vector>

#include "attest/sass/listing.h"

namespace attest::tools {

/// Functions whose demangled names contain each of `parts`, of one architecture where `arch` is not empty; one at
/// least. Objects are disassembled by cuobjdump, of which an architecture that is not there is asked first. Throws
/// InvalidInput naming `kernel`, `arch` or `function`, and EnvironmentError where cuobjdump is missing or fails.
std::vector<SassFunction> read_machine_code(const std::string& file, const std::vector<std::string>& parts,
                                            const std::string& arch);

}  // namespace attest::tools
