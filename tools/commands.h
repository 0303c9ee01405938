// The commands of `attest`, one file each, in the order of --help.
#pragma once
#include "program.h"

namespace attest::tools {

Command doctor_command();
Command reference_command();

}  // namespace attest::tools
