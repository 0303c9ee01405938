// A warp's registers and a CTA's shared memory, lane by lane, as the PTX ISA defines ldmatrix, mma.m16n8k16,
// mma.m16n8k8 and mma.m16n8k32. Values are integers, so a right answer is exact. Independent of the plan's own fragment
// maps.
#pragma once
#include <cstring>
#include <map>
#include <vector>

#include "attest/plan/instructions.h"

namespace attest::test {

struct LaneMachine {
  using Lanes = std::array<std::uint32_t, 32>;
  struct Fragment {
    std::uint32_t r[32][4] = {};
  };
  struct Query {
    std::map<std::pair<int, int>, Fragment> f;
    Fragment& at(int m, int k) { return f[{m, k}]; }
  };
  struct Probabilities {
    std::map<int, Fragment> f;
    Fragment& at(int m) { return f[m]; }
  };
  struct Blocks {  // m16n8 accumulator blocks
    std::map<std::pair<int, int>, std::array<std::array<long, 4>, 32>> b;
    auto& at(int m, int n) { return b[{m, n}]; }
    const auto& at(int m, int n) const { return b.at({m, n}); }
  };
  using Scores = Blocks;
  using Output = Blocks;

  int element_bytes;
  std::vector<std::uint8_t>& smem;
  std::vector<std::uint8_t>* global = nullptr;  // of the operand being copied or stored: rows of `row_pitch` bytes
  int row_pitch = 0;
  int warp_index = 0;
  std::vector<int>* touched = nullptr;  // times each byte of shared memory was filled

  int warp() const { return warp_index; }
  template <class F>
  Lanes lanes(F f) const {
    Lanes l;
    for (int i = 0; i < 32; ++i) l[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(f(i));
    return l;
  }

  void copy(const Granule<Lanes>& g) {
    for (std::size_t i = 0; i < 32; ++i) {
      const int row = g.pass_row0 + static_cast<int>(g.row[i]), byte = g.byte0 + static_cast<int>(g.byte[i]);
      if (row >= g.tile_rows) continue;
      const std::uint32_t to = (g.smem[i] ^ g.smem_xor) + g.smem_add;
      for (int b = 0; b < g.bytes; ++b) {
        const bool there = g.row0 + row < g.limit && byte + b < g.row_bytes;
        smem.at(to + static_cast<std::uint32_t>(b)) =
            there ? global->at(static_cast<std::size_t>((g.row0 + row) * row_pitch + byte + b)) : 0;
        if (touched) ++touched->at(to + static_cast<std::uint32_t>(b));
      }
    }
  }
  void store(const Granule<Lanes>& g) {
    for (std::size_t i = 0; i < 32; ++i) {
      const int row = g.pass_row0 + static_cast<int>(g.row[i]), byte = g.byte0 + static_cast<int>(g.byte[i]);
      if (row >= g.tile_rows || g.row0 + row >= g.limit || byte >= g.row_bytes) continue;
      std::memcpy(&global->at(static_cast<std::size_t>((g.row0 + row) * row_pitch + byte)),
                  &smem.at((g.smem[i] ^ g.smem_xor) + g.smem_add), static_cast<std::size_t>(g.bytes));
    }
  }

  // ldmatrix: matrix i has its 8 row addresses in lanes 8i..8i+7; lane t receives the 32-bit word t%4 of row t/4, or,
  // with .trans, the elements (2 (t%4), t/4) and (2 (t%4) + 1, t/4).
  template <bool Transposed>
  void load_matrix(Operand, Fragment& f, const Lanes& lane, std::uint32_t x, std::uint32_t add) {
    const auto row = [&](int matrix, int r) { return (lane[static_cast<std::size_t>(8 * matrix + r)] ^ x) + add; };
    for (int t = 0; t < 32; ++t)
      for (int i = 0; i < 4; ++i) {
        if (!Transposed) {
          std::memcpy(&f.r[t][i], &smem.at(row(i, t / 4) + static_cast<std::uint32_t>(4 * (t % 4))), 4);
        } else {
          std::uint16_t half[2];
          for (int h = 0; h < 2; ++h)
            std::memcpy(&half[h], &smem.at(row(i, 2 * (t % 4) + h) + static_cast<std::uint32_t>(2 * (t / 4))), 2);
          std::memcpy(&f.r[t][i], half, 4);
        }
      }
  }
  void load_words(Operand, Fragment& f, const Lanes (&lane)[4], std::uint32_t x, std::uint32_t add) {
    for (int i = 0; i < 4; ++i)
      for (std::size_t t = 0; t < 32; ++t) std::memcpy(&f.r[t][i], &smem.at((lane[i][t] ^ x) + add), 4);
  }

  // Two prmt.b32 each of registers (0, 1) and (2, 3), with selectors 0x6420 and 0x7531.
  void part_columns(Fragment& f) {
    for (auto& r : f.r) {
      const auto permute = [](std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
        const std::uint64_t bytes = a | static_cast<std::uint64_t>(b) << 32;
        std::uint32_t result = 0;
        for (int i = 0; i < 4; ++i)
          result |= static_cast<std::uint32_t>(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
        return result;
      };
      const std::uint32_t even[] = {permute(r[0], r[1], 0x6420), permute(r[2], r[3], 0x6420)};
      const std::uint32_t odd[] = {permute(r[0], r[1], 0x7531), permute(r[2], r[3], 0x7531)};
      r[0] = even[0], r[1] = even[1], r[2] = odd[0], r[3] = odd[1];
    }
  }

  // D[16 x 8] += A[16 x k] B[k x 8], by the fragment tables of mma.m16n8k16 (.bf16), mma.m16n8k8 (.tf32) and
  // mma.m16n8k32 (.s8, .e4m3).
  void mma(std::array<std::array<long, 4>, 32>& d, const Fragment& a, const Fragment& b, int first_b, bool zero) const {
    long A[16][32] = {}, B[32][8] = {};
    const int k = 32 / element_bytes;
    for (int t = 0; t < 32; ++t) {
      const int g = t >> 2, c = t & 3;
      for (int j = 0; j < 4; ++j) {
        if (element_bytes == 4) {
          A[g + 8 * (j % 2)][c + 4 * (j / 2)] = static_cast<std::int32_t>(a.r[t][j]);
        } else if (element_bytes == 1) {
          for (int h = 0; h < 4; ++h)
            A[g + 8 * (j % 2)][4 * c + 16 * (j / 2) + h] = static_cast<std::int8_t>(a.r[t][j] >> (8 * h));
        } else {
          for (int h = 0; h < 2; ++h)
            A[g + 8 * (j % 2)][2 * c + 8 * (j / 2) + h] = static_cast<std::int16_t>(a.r[t][j] >> (16 * h));
        }
      }
      for (int j = 0; j < 2; ++j) {
        const std::uint32_t word = b.r[t][first_b + j];
        if (element_bytes == 4) {
          B[c + 4 * j][g] = static_cast<std::int32_t>(word);
        } else if (element_bytes == 1) {
          for (int h = 0; h < 4; ++h) B[4 * c + 16 * j + h][g] = static_cast<std::int8_t>(word >> (8 * h));
        } else {
          for (int h = 0; h < 2; ++h) B[2 * c + 8 * j + h][g] = static_cast<std::int16_t>(word >> (16 * h));
        }
      }
    }
    for (int t = 0; t < 32; ++t)
      for (int e = 0; e < 4; ++e) {
        long sum = zero ? 0 : d[static_cast<std::size_t>(t)][static_cast<std::size_t>(e)];
        for (int i = 0; i < k; ++i) sum += A[t / 4 + 8 * (e / 2)][i] * B[i][2 * (t % 4) + e % 2];
        d[static_cast<std::size_t>(t)][static_cast<std::size_t>(e)] = sum;
      }
  }
  void mma_scores(Scores& s, int m, int n, const Fragment& a, const Fragment& b, bool zero) {
    mma(s.at(m, 2 * n), a, b, 0, zero);
    mma(s.at(m, 2 * n + 1), a, b, 2, zero);
  }
  void mma_output(Output& o, int m, int d, const Fragment& p, const Fragment& b) {
    mma(o.at(m, 2 * d), p, b, 0, false);
    mma(o.at(m, 2 * d + 1), p, b, 2, false);
  }
  void probability(Fragment& p, Scores& s, int m,
                   int step) {  // accumulators become operand registers without a shuffle
    for (std::size_t t = 0; t < 32; ++t) {
      const auto pack = [](long lo, long hi) {
        return (static_cast<std::uint32_t>(lo) & 0xffff) | static_cast<std::uint32_t>(hi) << 16;
      };
      if (element_bytes == 1) {
        for (int j = 0; j < 4; ++j) {  // keys of blocks 0 and 1, then 2 and 3; rows g and g + 8
          const auto &x = s.at(m, 4 * step + 2 * (j / 2))[t], &y = s.at(m, 4 * step + 2 * (j / 2) + 1)[t];
          const auto e = static_cast<std::size_t>(2 * (j % 2));
          p.r[t][j] = 0;
          for (const long value : {y[e + 1], y[e], x[e + 1], x[e]})
            p.r[t][j] = p.r[t][j] << 8 | (static_cast<std::uint32_t>(value) & 0xff);
        }
      } else if (element_bytes == 2) {
        const auto &x = s.at(m, 2 * step)[t], &y = s.at(m, 2 * step + 1)[t];
        p.r[t][0] = pack(x[0], x[1]), p.r[t][1] = pack(x[2], x[3]), p.r[t][2] = pack(y[0], y[1]),
        p.r[t][3] = pack(y[2], y[3]);
      } else {
        const auto& x = s.at(m, step)[t];
        p.r[t][0] = static_cast<std::uint32_t>(x[0]), p.r[t][1] = static_cast<std::uint32_t>(x[2]);
        p.r[t][2] = static_cast<std::uint32_t>(x[1]), p.r[t][3] = static_cast<std::uint32_t>(x[3]);
      }
    }
  }
  void stage(const Output& o, int m, int d, int half, const Lanes& lane, std::uint32_t x, std::uint32_t add) {
    const auto pair = 2 * static_cast<std::size_t>(half);
    if (element_bytes == 1) {  // 16-bit outputs of even and odd columns in turn
      for (std::size_t t = 0; t < 32; ++t) {
        const auto &even = o.at(m, 2 * d)[t], &odd = o.at(m, 2 * d + 1)[t];
        const std::int16_t values[] = {static_cast<std::int16_t>(even[pair]), static_cast<std::int16_t>(odd[pair]),
                                       static_cast<std::int16_t>(even[pair + 1]),
                                       static_cast<std::int16_t>(odd[pair + 1])};
        std::memcpy(&smem.at((lane[t] ^ x) + add), values, sizeof values);
      }
      return;
    }
    for (std::size_t t = 0; t < 32; ++t)
      for (std::size_t e = 0; e < 2; ++e) {
        const long value = o.at(m, d)[t][pair + e];
        std::memcpy(
            &smem.at((lane[t] ^ x) + add + static_cast<std::uint32_t>(e) * static_cast<std::uint32_t>(element_bytes)),
            &value, static_cast<std::size_t>(element_bytes));
      }
  }
};

}  // namespace attest::test
