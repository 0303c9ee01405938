// Which plans no kernel can have, and why. Included by kernel_plan.h.
#pragma once
#include "attest/plan/kernel_plan.h"

namespace attest {

constexpr const char* KernelPlan::invalid() const {
  const auto outside = [](auto x, auto low, auto high) { return x < low || x > high; };
  const bool tma = copy_kind == CopyKind::tma, wgmma = matrix_kind == MatrixKind::wgmma;
  if (outside(headdim, 1, 256)) return "headdim is outside 1 to 256";
  if (outside(headdim_v, 1, 256)) return "headdim_v is outside 1 to 256";
  if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) return "element_bytes is none of 1, 2, 4";
  if (outside(num_warps, 1, 16)) return "num_warps is outside 1 to 16";
  if (outside(tile_m, 16, 512)) return "tile_m is outside 16 to 512";
  if (tile_m % 16 != 0) return "tile_m is no multiple of 16, the rows of a matrix step";
  if (tile_m % (16 * num_warps) != 0) return "num_warps does not divide tile_m = {tile_m} into multiples of 16 rows";
  if (outside(producer_warps, 0, 4)) return "producer_warps is outside 0 to 4";
  if (tma && producer_warps == 0) return "producer_warps is below 1, which copy_kind = tma needs";
  if (!tma && producer_warps > 0) return "producer_warps is above 0, where copy_kind = {copy_kind} is not tma";
  if (wgmma && !tma) return "matrix_kind needs copy_kind = tma, not {copy_kind}";
  if (wgmma && num_warps % 4 != 0) return "num_warps is no multiple of 4, a warpgroup, which matrix_kind = wgmma needs";
  if (wgmma && rows_per_warp() != 16)
    return "tile_m is not 16 rows for each of num_warps = {num_warps}, which matrix_kind = wgmma needs";
  if (overlap == Overlap::between_warpgroups) {
    if (!wgmma) return "overlap needs matrix_kind = wgmma, not {matrix_kind}";
    if (num_warps < 8) return "overlap needs num_warps >= 8, two warpgroups, not {num_warps}";
  }
  if (p_in_smem && !wgmma) return "p_in_smem needs matrix_kind = wgmma, not {matrix_kind}";
  if (outside(cluster, 1, 16)) return "cluster is outside 1 to 16";
  if (cluster > 1 && !tma) return "cluster is above 1, where copy_kind = {copy_kind} is not tma";
  if (outside(pad_chunks, 0, 8)) return "pad_chunks is outside 0 to 8";
  if (pad_chunks > 0 && tma) return "pad_chunks is above 0, where copy_kind = tma writes rows without gaps";
  if (outside(other_smem_bytes, 0, 262144)) return "other_smem_bytes is outside 0 to 262144";
  if (packed_heads < 1) return "packed_heads is below 1";
  if (packed_heads > 1 && (alibi || bias || sink))
    return "packed_heads is above 1, where the case has alibi, bias or a sink: heads differ there";
  if (l2_section_bytes < 0) return "l2_section_bytes is below 0";
  if (outside(tile_n, 16, 512)) return "tile_n is outside 16 to 512";
  if (tile_n % 16 != 0) return "tile_n is no multiple of 16";
  if (tile_n % k_step() != 0) return "tile_n is no multiple of 32, the keys of a matrix step of 8-bit values";
  if (outside(stages, 1, 4)) return "stages is outside 1 to 4";
  if (merged_wait && stages < 2) return "merged_wait needs stages >= 2, not {stages}";
  if (copy_columns != 0 && (outside(copy_columns, 16, 256) || (copy_columns & (copy_columns - 1)) != 0))
    return "copy_columns is none of 0, 16, 32, 64, 128, 256";
  if (padded_headdim != 0) {
    if (padded_headdim < headdim) return "padded_headdim is below headdim = {headdim}";
    if (padded_headdim % 16 != 0) return "padded_headdim is no multiple of 16";
    if (padded_headdim % k_step() != 0) return "padded_headdim is no multiple of 32, a matrix step of 8-bit values";
  }
  if (padded_headdim_v != 0) {
    if (padded_headdim_v < headdim_v) return "padded_headdim_v is below headdim_v = {headdim_v}";
    if (padded_headdim_v % 16 != 0) return "padded_headdim_v is no multiple of 16";
  }
  for (const Operand x : {Operand::q, Operand::k, Operand::v, Operand::o}) {
    const auto of = [x](const char* q, const char* k, const char* v, const char* o) {
      return x == Operand::q ? q : x == Operand::k ? k : x == Operand::v ? v : o;
    };
    const int granule = copy_bytes(x);
    if (outside(granule, 1, 16) || (granule & (granule - 1)) != 0)
      return of("copy_bytes_q is none of 1, 2, 4, 8, 16", "copy_bytes_k is none of 1, 2, 4, 8, 16",
                "copy_bytes_v is none of 1, 2, 4, 8, 16", "copy_bytes_o is none of 1, 2, 4, 8, 16");
    if (granule < bytes(x))
      return of("copy_bytes_q is below element_bytes = {element_bytes}",
                "copy_bytes_k is below element_bytes = {element_bytes}",
                "copy_bytes_v is below element_bytes = {element_bytes}",
                "copy_bytes_o is below the bytes of an output, element_bytes = {element_bytes} but 2 at least");
    if (valid_columns(x) * bytes(x) % granule != 0)
      return of("copy_bytes_q does not divide the bytes of a row of headdim = {headdim} elements",
                "copy_bytes_k does not divide the bytes of a row of headdim = {headdim} elements",
                "copy_bytes_v does not divide the bytes of a row of headdim_v = {headdim_v} elements",
                "copy_bytes_o does not divide the bytes of a row of headdim_v = {headdim_v} elements");
  }
  return nullptr;
}

}  // namespace attest
