#include "attest/problem/numerics.h"

#include <fmt/format.h>

namespace attest {

Numerics flash_numerics(Dtype dtype, int smallest_tile) {
  Numerics n;
  n.name = fmt::format("flash {}", to_string(dtype));
  n.smallest_tile = smallest_tile;
  switch (dtype) {
    case Dtype::fp16:  // 10 + 1 bits; subnormals 2^-24 apart below 2^-14
      n.u_P = n.u_out = 0x1p-11;
      n.a_P = n.floor_out = 0x1p-25;
      n.min_normal_P = 0x1p-14;
      break;
    case Dtype::bf16:  // 7 + 1 bits, fp32's range: subnormals may be flushed
      n.u_P = n.u_out = 0x1p-8;
      n.a_P = n.floor_out = 0x1p-126;
      n.min_normal_P = 0x1p-126;
      break;
    case Dtype::fp8_e4m3:  // P in the inputs' format, O in bf16
      n.u_P = 0x1p-4;
      n.a_P = 0x1p-10;
      n.min_normal_P = 0x1p-6;
      n.u_out = 0x1p-8;
      n.floor_out = 0x1p-126;
      break;
    case Dtype::fp8_e5m2:
      n.u_P = 0x1p-3;
      n.a_P = 0x1p-17;
      n.min_normal_P = 0x1p-14;
      n.u_out = 0x1p-8;
      n.floor_out = 0x1p-126;
      break;
    case Dtype::fp32:
      n.u_out = 0x1p-24;
      n.floor_out = 0x1p-126;
      n.a_P = 0x1p-126;
      n.min_normal_P = 0x1p-126;
      return n;
  }
  n.u_P_backward = n.u_dS = n.u_out;
  n.a_P_backward = n.a_dS = n.floor_out;
  return n;
}

}  // namespace attest
