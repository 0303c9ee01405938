// The production forward for sm_80 and later: cp.async, ldmatrix, mma.sync.
#pragma once
#include "attest/gpu/device_kernel.h"
#include "attest/plan/catalog.h"
#include "attest/sm80/params.h"

namespace attest {

/// The kernel behind --kernel sm80: fp16 and bf16, every mask, modifier and layout of a Case, with as many splits as it
/// asks for.
std::unique_ptr<DeviceForward> make_sm80_forward();

namespace sm80 {

/// One call as its kernels are launched with it. `args` are the device's; `workspace` holds workspace_bytes().
ForwardParams make_params(const Case& c, const ForwardArgs& args, void* workspace);
/// The kernel that launch_forward() takes.
Sm80Choice choice_of(const ForwardParams& params);
/// Whether the library has a kernel of that tile and kind, in fp16 and bf16 alike.
bool has_kernel(Sm80Tile tile, Sm80Kind kind);
/// What an SM of the current device spends on a kernel, as its driver counts it.
struct KernelResources {
  int registers = 0, local_bytes = 0;  // a thread
  int ctas_per_sm = 0;
};
/// Where has_kernel(). Throws CudaError.
KernelResources resources_of(Dtype dtype, Sm80Tile tile, Sm80Kind kind);
/// How many splits suit a case on the current device, whatever the case says: choose_num_splits(). Throws CudaError.
int choose_splits(const Case& c, const DeviceLimits& device);
/// Of partial results, where there are splits.
std::size_t workspace_bytes(const Case& c);
/// The forward, and combine() where there are splits. Throws CudaError.
void launch_forward(const Case& c, const ForwardParams& params, cudaStream_t stream);
/// With `function`, of `plan`, in place of the kernel that the launch's tile and kind name.
void launch_forward(const Case& c, const ForwardParams& params, const void* function, const KernelPlan& plan,
                    cudaStream_t stream);

}  // namespace sm80
}  // namespace attest
