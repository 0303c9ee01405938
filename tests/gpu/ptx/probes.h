// Kernels of one warp that run one instruction and write down what each lane holds.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "attest/problem/dtype.h"

namespace attest::test {

template <std::size_t N>
using PerLane = std::array<std::array<std::uint32_t, N>, 32>;

/// Registers of ldmatrix.x4 over `tile` [16][16] of 16 bits in shared memory, lane l supplying row cells[l][0], chunk
/// cells[l][1].
PerLane<4> run_ldmatrix(const std::vector<std::uint16_t>& tile, const PerLane<2>& cells, bool transposed);

/// Accumulators of mma.m16n8k16 with C = `c`, as bits.
PerLane<4> run_mma(Dtype dtype, const PerLane<4>& a, const PerLane<2>& b, const PerLane<4>& c);

enum class Function : std::uint8_t { exp2, tanh, pack_fp16, pack_bf16, quad_max, quad_sum };
/// f of each x, 32 at a time a warp; pack: of x and 0, the low half.
std::vector<std::uint32_t> run_function(Function f, const std::vector<float>& x);

/// 32 lanes copy `bytes` each from `from` + lane * 16 to lane * 16 of shared memory, odd lanes zeros where
/// `zeros`; then 2 groups are committed and waited for. Shared memory starts as 0xee.
std::vector<std::uint8_t> run_copy(int bytes, bool zeros, const std::vector<std::uint8_t>& from);

/// Likewise 16 bytes each by a copy that `go` calls off, which leaves shared memory as it was: through registers, or
/// asynchronous. Lanes whose number divides by 3 do not go where `some_stay`.
std::vector<std::uint8_t> run_copy_if(bool through_registers, bool some_stay, bool zeros,
                                      const std::vector<std::uint8_t>& from);

/// The reverse, from shared memory that holds `from`; odd lanes are told that their place does not exist.
std::vector<std::uint8_t> run_store(int bytes, const std::vector<std::uint8_t>& from);

}  // namespace attest::test
