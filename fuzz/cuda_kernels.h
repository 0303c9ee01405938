// The kernels that need a GPU, in a build that has them and in one that does not.
#pragma once
#include <memory>
#include <optional>
#include <string_view>

#include "attest/fuzz/truth.h"
#include "attest/gpu/kernel.h"

namespace attest {

inline constexpr std::string_view cuda_kernel_names[] = {"sm80", "unfused"};

/// One of these names. Throws EnvironmentError where this build has no CUDA and where this machine has no GPU for it,
/// InvalidInput for a SPEC that the kernel does not take.
std::unique_ptr<Kernel> make_cuda_kernel(std::string_view name, std::string_view spec);

/// What it declares, which takes no GPU; none where this build has no CUDA.
std::optional<Capability> cuda_capability(std::string_view name);

/// The reference on the GPU. Throws EnvironmentError where this build has no CUDA and where this machine has no GPU.
TruthFunction gpu_truth();

}  // namespace attest
