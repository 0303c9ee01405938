// The production forward for sm_80 and later: cp.async, ldmatrix, mma.sync.
#pragma once
#include "attest/gpu/device_kernel.h"
#include "attest/sm80/params.h"

namespace attest {

/// The kernel behind --kernel sm80: fp16 and bf16, every mask, modifier and layout of a Case, with as many splits as it
/// asks for.
std::unique_ptr<DeviceForward> make_sm80_forward();

namespace sm80 {

/// One call as its kernels are launched with it. `args` are the device's; `workspace` holds workspace_bytes().
ForwardParams make_params(const Case& c, const ForwardArgs& args, void* workspace);
/// Of partial results, where there are splits.
std::size_t workspace_bytes(const Case& c);
/// The forward, and combine() where there are splits. Throws CudaError.
void launch_forward(const Case& c, const ForwardParams& params, cudaStream_t stream);

}  // namespace sm80
}  // namespace attest
