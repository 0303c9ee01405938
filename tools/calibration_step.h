// Micro-benchmarks that fail leave the others of a calibration be.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attest/problem/error.h"

namespace attest::tools {

/// Does a step, after its name on stderr. What it fails with, such as memory that others hold, is a line of `missing`;
/// throws EnvironmentError with that line where the GPU, of which `is_usable()` is asked then, has failed for good.
template <class Work, class IsUsable>
void calibration_step(std::string_view name, std::vector<std::string>& missing, Work work, IsUsable is_usable) {
  fmt::print(stderr, "attest: {}\n", name);
  try {
    work();
  } catch (const std::runtime_error& error) {
    missing.push_back(fmt::format("{}: {}", name, error.what()));
    if (!is_usable()) throw EnvironmentError(missing.back());
  }
}

}  // namespace attest::tools
