// What the three-kernel path costs: S = Q K^T written, softmax read and written in place, O = P V.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "attest/problem/problem.h"
#include "attest/simulator/device.h"
#include "attest/simulator/utilisation.h"

namespace attest {

/// One of the three kernels.
struct UnfusedKernel {
  std::string_view name;  // "S = Q K^T", "P = softmax(S)" or "O = P V"
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double operand_bytes = 0, result_bytes = 0;  // what it reads and writes, wherever it finds it and leaves it
  double local_bytes = 0;                      // stored in local memory beside
  double dirty_bytes_alone = 0;                // of the result, still in L2 at its end where nothing was dirty before
  double l2_read_bytes = 0;                    // what its CTAs ask of L2, tile by tile
  double flops = 0;                            // of its matrix product
  double cycles = 0;                           // on the device
  double time_us = 0;                          // those and its launch by the host
  std::vector<Utilisation> utilisation;
  std::string bound;
};

struct UnfusedCost {
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double sm_write_bytes = 0;  // results and local memory
  double l2_read_bytes = 0;
  double flops = 0;                      // of the whole rectangle: the matrix products skip nothing
  double cycles = 0;                     // of the kernels, one after the other
  double time_us = 0;                    // those and their launches by the host
  std::vector<Utilisation> utilisation;  // over their cycles
  std::string bound;
  double matrix_bytes = 0;      // S, as large as P
  double dirty_bytes_left = 0;  // still in L2 at the end
  static constexpr int kernels = 3;
  std::array<UnfusedKernel, kernels> steps;  // what the sums above are made of, in order
};

/// How three kernels go about it, beyond what any must.
struct UnfusedKernels {
  bool own = false;              // gpu/unfused's, whose time is by their instructions where elements have 16 bits
  double tile_bytes = 64 << 10;  // of a product's result, a CTA: 128 x 256 or 64 x 512 in 16 bits, as cuBLAS chose
  double score_columns = 128;    // of S's tiles, which have as many rows as there is room and are queries
  double output_column_unit = 64, most_output_columns = 256;  // of O's
  double least_rows = 8;                                      // of either, where there are fewer queries
  double cluster = 2;           // CTAs that a copy of the operand that they share is multicast to, where there is that
  double local_bytes = 0;       // that such a CTA keeps in local memory
  int product_warps = 8;        // of it
  int product_ctas_per_sm = 2;  // at once
  int softmax_rows_per_sm = 0;  // under way at once, read once for the maximum and again; 0: read once
  std::int64_t softmax_row_bytes = 0;  // stored for each row beside P, in sectors: its sum and LSE
};
/// gpu/unfused: tiles of 128 x 128; 256 threads that keep 64 sums each in local memory, since they index them, stored
/// once and read once; 32 warps a SM, by registers, each with a row of S, which leave two single words behind.
UnfusedKernels own_unfused(const Problem& problem);

/// S and P are in the case's dtype, one row of seqlen_k a query, masked pairs included. A matrix that fits one L2
/// partition is found there by the next kernel, a larger one comes from DRAM, as do rows that are read again and do not
/// fit together; of what is written the ways that may stay dirty hold the end. Softmax and O = P V take the longer of
/// their arithmetic and their bytes, S = Q K^T, whose tiles are loaded, multiplied once or twice and stored, both one
/// after the other; each takes a launch. `empties_between`: L2 holds nothing of a kernel for the next one (known of
/// kernels with local memory, which are walked). `through_ncu`: Nsight Compute runs the process, which has its memory
/// lie elsewhere.
UnfusedCost unfused_cost(const Problem& problem, const DeviceSpec& device, const UnfusedKernels& kernels = {},
                         std::int64_t dirty_bytes_at_start = 0, bool empties_between = false, bool through_ncu = false);

}  // namespace attest
