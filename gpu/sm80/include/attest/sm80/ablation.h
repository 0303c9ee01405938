// The sm_80 forward with one of its mechanisms taken away, for experiments: the d128 tile's fast kernel in bf16.
#pragma once
#include <memory>

#include "attest/gpu/device_kernel.h"
#include "attest/plan/sm80_ablations.h"
#include "attest/sm80/params.h"

namespace attest {

/// The kernel behind --kernel sm80-no-swizzle and so on: what the tile for head dimension 128 runs by its fast kernel.
std::unique_ptr<DeviceForward> make_sm80_ablation(Sm80Ablation ablation);

namespace sm80 {

/// As launch_forward(), for what the tile for head dimension 128 runs by its fast kernel in bf16. Throws InvalidInput,
/// naming `dtype` or `kernel`, where that is another.
void launch_ablation(const Case& c, const ForwardParams& params, Sm80Ablation ablation, cudaStream_t stream);

}  // namespace sm80

}  // namespace attest
