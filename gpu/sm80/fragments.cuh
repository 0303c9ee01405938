// A warp's registers, and the instructions on them that gpu/plan's instruction lists are made of.
#pragma once
#include "attest/plan/instructions.h"
#include "attest/ptx/ldmatrix.cuh"
#include "attest/ptx/math.cuh"
#include "attest/ptx/mma.cuh"
#include "attest/ptx/shared.cuh"

namespace attest::sm80 {

struct Fragment {
  std::uint32_t r[4];
};

/// Arrays of a kernel's plan: m blocks of 16 rows, n blocks of 8 keys, d blocks of 8 columns of V.
template <class Cfg>
struct Registers {
  static constexpr KernelPlan plan = Cfg::plan;
  static constexpr int m_blocks = plan.m_blocks(), n_blocks = plan.tile_n / 8;
  static constexpr int d_blocks = plan.columns(Operand::v) / 8, k_steps = plan.columns(Operand::q) / 16;

  struct Query {
    Fragment f[m_blocks][k_steps];
    ATTEST_DEVICE Fragment& at(int m, int step) { return f[m][step]; }
  };
  struct Probabilities {
    Fragment f[m_blocks];
    ATTEST_DEVICE Fragment& at(int m) { return f[m]; }
  };
  struct Scores {
    float x[m_blocks][n_blocks][4];
  };
  struct Output {
    float x[m_blocks][d_blocks][4];
  };
  /// Of rows g and g + 8 of each m block: the maximum that O is relative to, and this lane's part of the sum.
  struct Rows {
    float max[m_blocks][2], sum[m_blocks][2];
  };
};

ATTEST_DEVICE int lane_id() { return static_cast<int>(threadIdx.x) & 31; }
ATTEST_DEVICE int warp_id() { return static_cast<int>(threadIdx.x) >> 5; }

/// A number a lane is one register.
struct LaneInstructions {
  using Lanes = std::uint32_t;
  ATTEST_DEVICE int warp() const { return warp_id(); }
  template <class F>
  ATTEST_DEVICE Lanes lanes(F f) const {
    return f(lane_id());
  }
};

template <class Cfg>
struct MatrixInstructions : LaneInstructions {
  using Fragment = sm80::Fragment;
  using Query = typename Registers<Cfg>::Query;
  using Probabilities = typename Registers<Cfg>::Probabilities;
  using Scores = typename Registers<Cfg>::Scores;
  using Output = typename Registers<Cfg>::Output;

  std::uint32_t smem;  // a multiple of 1024, so that the XOR of a swizzle may follow its addition

  template <bool Transposed>
  ATTEST_DEVICE void load_matrix(Operand, Fragment& f, Lanes lane, std::uint32_t step_xor, std::uint32_t step_add) {
    ptx::load_matrix_x4<Transposed>(f.r, ((smem + lane) ^ step_xor) + step_add);
  }
  ATTEST_DEVICE void part_columns(Fragment&) {}  // 8-bit inputs
  ATTEST_DEVICE void load_words(Operand, Fragment&, const Lanes (&)[4], std::uint32_t, std::uint32_t) {}  // 32-bit

  ATTEST_DEVICE void mma_scores(Scores& s, int m, int n, const Fragment& a, const Fragment& b, bool first) {
    const float zero[4] = {0, 0, 0, 0};
    float(&low)[4] = s.x[m][2 * n];
    float(&high)[4] = s.x[m][2 * n + 1];
    if (first) {
      ptx::mma_m16n8k16<Cfg::dtype>(low, a.r, b.r[0], b.r[1], zero);
      ptx::mma_m16n8k16<Cfg::dtype>(high, a.r, b.r[2], b.r[3], zero);
    } else {
      ptx::mma_m16n8k16<Cfg::dtype>(low, a.r, b.r[0], b.r[1], low);
      ptx::mma_m16n8k16<Cfg::dtype>(high, a.r, b.r[2], b.r[3], high);
    }
  }
  ATTEST_DEVICE void mma_output(Output& o, int m, int d, const Fragment& p, const Fragment& b) {
    ptx::mma_m16n8k16<Cfg::dtype>(o.x[m][2 * d], p.r, b.r[0], b.r[1], o.x[m][2 * d]);
    ptx::mma_m16n8k16<Cfg::dtype>(o.x[m][2 * d + 1], p.r, b.r[2], b.r[3], o.x[m][2 * d + 1]);
  }
  /// Accumulators of 16 keys lie as the A operand of a matrix step does.
  ATTEST_DEVICE void probability(Fragment& p, const Scores& s, int m, int step) {
    const float(&low)[4] = s.x[m][2 * step];
    const float(&high)[4] = s.x[m][2 * step + 1];
    p.r[0] = ptx::pack<Cfg::dtype>(low[0], low[1]);
    p.r[1] = ptx::pack<Cfg::dtype>(low[2], low[3]);
    p.r[2] = ptx::pack<Cfg::dtype>(high[0], high[1]);
    p.r[3] = ptx::pack<Cfg::dtype>(high[2], high[3]);
  }
  ATTEST_DEVICE void stage(const Output& o, int m, int d, int half, Lanes lane, std::uint32_t step_xor,
                           std::uint32_t step_add) {
    ptx::store_shared_32(((smem + lane) ^ step_xor) + step_add,
                         ptx::pack<Cfg::dtype>(o.x[m][d][2 * half], o.x[m][d][2 * half + 1]));
  }
};

}  // namespace attest::sm80
