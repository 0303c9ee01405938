// The kernels that --kernel names.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attest/gpu/kernel.h"

namespace attest {

/// "NAME" or "NAME:SPEC", where SPEC is what that kernel lets a user fix ("cpu:tile_m=64,stages=2"). "mutant:ID" is a
/// planted bug of `attest mutants`, so that its repro lines can be pasted too. A PATH with a '/' or ".so" is a library
/// of kernel_api.h, which is loaded into this process, "PATH:OPTIONS" with what it is told. Throws InvalidInput naming
/// `kernel` or the field of SPEC, and EnvironmentError for a CUDA kernel where this build or this machine has none.
std::unique_ptr<Kernel> make_kernel(std::string_view spec);

/// What make_kernel takes before a ':', in the order of `attest kernels`; those that this build lacks included.
std::vector<std::string> kernel_names();

struct KernelEntry {
  std::string name;
  Capability capability;
  std::string unavailable;  // why it cannot run here, such as for want of a GPU; empty: it can
};

/// The kernels that this build has.
std::vector<KernelEntry> list_kernels();

/// CUDA's runtime in this build, such as "13.0", and why no kernel can run on it here; empty where there is none and
/// where they can.
struct CudaState {
  std::string runtime;
  std::string unavailable;
};
CudaState cuda_state();

}  // namespace attest
