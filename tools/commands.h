// The commands of `attest`, one file each, in the order of --help.
#pragma once
#include "program.h"

namespace attest::tools {

Command predict_command();
Command reference_command();
Command devices_command();
Command plans_command();
Command models_command();
Command doctor_command();

}  // namespace attest::tools
