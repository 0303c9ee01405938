// The commands of `attest`, one file each, in the order of --help.
#pragma once
#include "program.h"

namespace attest::tools {

Command check_command();
Command fuzz_command();
Command predict_command();
Command tune_command();
Command measure_command();
Command calibrate_command();
Command reference_command();
Command mutants_command();
Command bench_command();
Command nightly_command();
Command merge_command();
Command report_command();
Command kernels_command();
Command devices_command();
Command plans_command();
Command models_command();
Command doctor_command();
Command audit_command();

}  // namespace attest::tools
