// ldmatrix.x4: four 8 x 8 matrices of 16-bit elements from shared memory; lanes 8i to 8i + 7 supply the addresses of
// the rows of matrix i, 16 bytes each, and register i of lane 4g + t gets elements 2t and 2t + 1 of its row g, or,
// transposed, of its column g. gpu/plan's a_cell, b_cell and b_transposed_cell say which rows these are.
#pragma once
#include "attest/ptx/address.cuh"

namespace attest::ptx {

template <bool Transposed>
ATTEST_DEVICE void load_matrix_x4(std::uint32_t (&r)[4], std::uint32_t shared) {
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared));
}

}  // namespace attest::ptx
