// A FlashAttention-2-style backward kernel in float, tile by tile, in several makes: what the gradients' budget must
// let pass. With a fault planted: what it must not.
#pragma once
#include <cstdint>

#include "attest/reference/backward.h"
#include "emulated_kernel.h"

namespace attest {

enum class BackwardFault : std::uint8_t {
  none,
  no_tail_mask,        // keys past the last one are loaded as zeros and not masked
  causal_offset,       // bottom-right mask one key further
  lse_of_next_row,     //
  D_without_a_column,  // sum dO O leaves the last column out
  no_scale,            // dQ and dK without the softmax_scale
  one_head_of_group,   // dK and dV from the group's last head
  no_cap_derivative,   // softcap's derivative is left out
  no_D,                // dS = P dP
  dropped_key,         // the middle visible key of every row
  lse_in_base_2,       // LSE taken as if in base 2
  short_ds,            // dS rounded to 4 bits less than the dtype has
  last_tile_lost,      // dQ without the last tile of keys
  first_batch_sink,    // dsink of the first batch entry alone
  bias_of_first_head,  // dbias not summed
  descale_dropped,     // K's descale is missing in dQ
};

struct EmulatedBackward {
  Dtype dtype = Dtype::bf16;
  int tile_m = 64, tile_n = 64;
  bool last_tile_first = false;  // of keys: the order in which dQ is added up
  Accumulator accumulator = Accumulator::fused;
  bool rounds_shares = false;  // each head's dK and dV rounded before the sum over the group
  bool exp2_of_fma = true;     // else exp(s - LSE)
  std::uint64_t noise = 0;
  BackwardFault fault = BackwardFault::none;

  /// From the O and LSE of some forward.
  Gradients run(const Problem& problem, const Inputs& inputs, const Forward& handed) const;
  Numerics numerics() const;
};

}  // namespace attest
