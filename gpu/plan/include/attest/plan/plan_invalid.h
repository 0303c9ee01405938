// Which plans no kernel can have, and why. Included by kernel_plan.h.
#pragma once
#include "attest/plan/kernel_plan.h"

namespace attest {

constexpr const char* KernelPlan::invalid() const {
  const auto power_of_two = [](int x, int low, int high) { return x >= low && x <= high && (x & (x - 1)) == 0; };
  if (headdim < 1 || headdim > 256) return "headdim is outside 1 to 256";
  if (headdim_v < 1 || headdim_v > 256) return "headdim_v is outside 1 to 256";
  if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) return "element_bytes is none of 1, 2, 4";
  if (num_warps < 1 || num_warps > 16) return "num_warps is outside 1 to 16";
  if (tile_m < 16 || tile_m > 512 || tile_m % (16 * num_warps) != 0)
    return "tile_m is no multiple of 16 rows a warp, up to 512";
  if (producer_warps < 0 || producer_warps > 4) return "producer_warps is outside 0 to 4";
  if ((copy_kind == CopyKind::tma) != (producer_warps > 0)) return "producer_warps and copies by tma need each other";
  if (matrix_kind == MatrixKind::wgmma && (num_warps % 4 != 0 || rows_per_warp() != 16 || copy_kind != CopyKind::tma))
    return "matrix_kind needs warpgroups of 4 warps, 64 rows each, and copies by tma";
  if (p_in_smem && matrix_kind != MatrixKind::wgmma) return "p_in_smem needs wgmma";
  if (cluster < 1 || cluster > 16 || (cluster > 1 && copy_kind != CopyKind::tma))
    return "cluster is outside 1 to 16, or without tma";
  if (pad_chunks < 0 || pad_chunks > 8 || (pad_chunks > 0 && copy_kind == CopyKind::tma))
    return "pad_chunks is outside 0 to 8, or with tma, which writes rows without gaps";
  if (other_smem_bytes < 0 || other_smem_bytes > 262144) return "other_smem_bytes is outside 0 to 262144";
  if (packed_heads < 1) return "packed_heads is below 1";
  if (packed_heads > 1 && (alibi || bias || sink)) return "packed_heads with alibi, bias or a sink: heads differ there";
  if (l2_section_bytes < 0) return "l2_section_bytes is negative";
  if (tile_n < 16 || tile_n > 512 || tile_n % 16 != 0) return "tile_n is no multiple of 16 up to 512";
  if (tile_n % k_step() != 0) return "tile_n is no multiple of the 32 keys of a matrix step of 8-bit values";
  if (stages < 1 || stages > 4) return "stages is outside 1 to 4";
  if (merged_wait && stages < 2) return "merged_wait needs stages >= 2";
  if (padded_headdim != 0 && (padded_headdim < headdim || padded_headdim % 16 != 0 || padded_headdim % k_step() != 0))
    return "padded_headdim is below headdim or no multiple of 16, or of 32 8-bit values";
  if (padded_headdim_v != 0 && (padded_headdim_v < headdim_v || padded_headdim_v % 16 != 0))
    return "padded_headdim_v is below headdim_v or no multiple of 16";
  for (const Operand x : {Operand::q, Operand::k, Operand::v, Operand::o}) {
    if (!power_of_two(copy_bytes(x), 1, 16)) return "copy_bytes is none of 1, 2, 4, 8, 16";
    if (copy_bytes(x) < bytes(x) || valid_columns(x) * bytes(x) % copy_bytes(x) != 0)
      return "copy_bytes does not divide a row";
  }
  return nullptr;
}

}  // namespace attest
