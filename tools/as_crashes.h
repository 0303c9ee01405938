// Kernels that fail in this process end the program as crashes in another do.
#pragma once
#include <fmt/format.h>

#include <stdexcept>

#include "attest/fuzz/worker.h"
#include "attest/problem/error.h"
#include "attest/simulator/measured_call.h"

namespace attest::tools {

/// Does what a call's kernel may fail in. Throws KernelCrashed, with the call, for CUDA's errors and what a plug-in
/// says; what is missing outside, and input that is refused, stay what they are.
template <class Work>
void as_crashes(const MeasuredCall& call, Work work) {
  try {
    work();
  } catch (const EnvironmentError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw KernelCrashed(fmt::format("kernel '{}' on {}: {}", call.kernel, command_line(call.c), error.what()));
  }
}

}  // namespace attest::tools
