// A FlashAttention-2-style kernel in float, one row at a time, in several makes: what the error budget must let pass.
// With a fault planted: what it must not.
#pragma once
#include <cstdint>

#include "attest/reference/compare.h"
#include "attest/reference/inputs.h"

namespace attest {

enum class Accumulator : std::uint8_t {
  fused,        // one fused multiply-add after another
  rounded,      // each product rounded, then each sum
  tensor_core,  // 16 exact products and the accumulator added at once and truncated to 24 bits
};

enum class Fault : std::uint8_t {
  none,
  scale,        // softmax_scale x 1.01
  dropped_key,  // the middle visible key of every row is left out
  swapped_v,    // the row's first and last visible keys have exchanged their V
  short_p,      // P rounded to one bit less
  o_in_fp16,    // O accumulated in fp16
  s_in_fp16,    // scores rounded to fp16
  no_softcap,
  cap_after_mask,  // a masked key scores -cap
  no_alibi,
  alibi_off_by_one,  // |i + off - j| + 1 at every second key
  no_bias,
  bias_inside_cap,
  bias_before_scale,
  no_sink,
  sink_is_scaled,  // by softmax_scale
  no_v_descale,
  k_descale_twice,
  lse_base_2,
};

struct EmulatedKernel {
  Dtype dtype = Dtype::bf16;
  int tile = 64;
  bool last_tile_first = false;
  Accumulator accumulator = Accumulator::fused;
  int denominator_sums = 4;   // partial sums of a row's l
  bool lazy_rescale = false;  // the reference maximum follows only once it lags by 8 in base 2
  bool lse_through_base_2 = false;
  double tanh_error = 0x1p-11;  // relative, at most
  int num_splits = 1;
  bool normalises_first = false;  // a split's keys in one tile, P divided by its sum before it meets V; no sink
  std::uint64_t noise = 0;        // seed of the exponentials' errors, up to 2 units of the last place
  Fault fault = Fault::none;

  Outputs run(const Problem& problem, const Inputs& inputs) const;
  Numerics numerics() const;
};

}  // namespace attest
