// The kernels that --kernel names.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attest/gpu/kernel.h"

namespace attest {

/// "NAME" or "NAME:SPEC", where SPEC is what that kernel lets a user fix ("cpu:tile_m=64,stages=2"). "mutant:ID" is a
/// planted bug of `attest mutants`, so that its repro lines can be pasted too. Throws InvalidInput
/// naming `kernel` or the field of SPEC.
std::unique_ptr<Kernel> make_kernel(std::string_view spec);

/// What make_kernel takes before a ':', in the order of `attest kernels`.
std::vector<std::string> kernel_names();

}  // namespace attest
