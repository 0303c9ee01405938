// One of FlashAttention 3's forwards, bf16: -DKERNEL=headdim,cluster,causal.
#include "flash_fwd_launch_template.h"

template <int Headdim, int Cluster, bool Causal>
void instantiate(Flash_fwd_params& params) {
  using Bf16 = cutlass::bfloat16_t;
  run_flash_fwd<90, Headdim, Headdim, Cluster, Bf16, Bf16, Causal, false, false, false, false, false, false, false,
                false, false>(params, nullptr);
}
template void instantiate<KERNEL>(Flash_fwd_params& params);
