// The memory that a Python kernel's process shares, as the place where it runs.
#pragma once
#include <memory>

#include "attest/gpu/run_place.h"
#include "python_process.h"

namespace attest {

std::unique_ptr<RunPlace> make_shared_place(std::shared_ptr<PythonProcess> process);

}  // namespace attest
