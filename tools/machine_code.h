// The machine code in a file: an object with code for GPUs, or what somebody has disassembled.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "attest/sass/listing.h"

namespace attest::tools {

/// What is read of a file at most.
struct MachineCodeLimits {
  /// Of a listing that cuobjdump makes, which takes 16 times the bytes of the code: of 4 GiB, which no library has.
  std::size_t printed_bytes = std::size_t{64} << 30;
  std::size_t kept_bytes = SassReader::usual_most_bytes;  // of the functions that are asked for, in memory
};

/// Functions whose demangled names contain each of `parts`, of one architecture where `arch` is not empty; one at
/// least, each with instructions. Objects are disassembled by cuobjdump, of which an architecture that is not there is
/// asked first. Throws InvalidInput naming `kernel`, `arch` or `function`, also where too much is to be kept, and
/// EnvironmentError where cuobjdump is missing, fails, prints too much or stops within a function.
std::vector<SassFunction> read_machine_code(const std::string& file, const std::vector<std::string>& parts,
                                            const std::string& arch, const MachineCodeLimits& limits = {});

}  // namespace attest::tools
