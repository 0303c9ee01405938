// The kernels that need a GPU, in a build that has them and in one that does not.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "attest/fuzz/truth.h"
#include "attest/gpu/kernel_api.h"
#include "attest/gpu/run_place.h"

namespace attest {

inline constexpr std::string_view cuda_kernel_names[] = {"sm80",         "sm80-no-swizzle", "sm80-sync-copies",
                                                         "sm80-no-skip", "sm80-spill",      "unfused"};

/// The table of one of these names, as a library's symbol gives it; null where this build has no CUDA.
using KernelSymbol = const attest_kernel_api* (*)(std::uint32_t host_abi_version);
KernelSymbol cuda_symbol(std::string_view name);

/// The memory of the GPU. Throws EnvironmentError where this build has no CUDA and where this machine has no GPU.
std::unique_ptr<RunPlace> make_cuda_place();

/// The reference on the GPU. Throws EnvironmentError where this build has no CUDA and where this machine has no GPU.
TruthFunction gpu_truth();

}  // namespace attest
