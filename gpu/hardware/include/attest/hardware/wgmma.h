// wgmma as PTX has it: 64 rows by N columns by 16, bf16 in, fp32 out, A from shared memory or registers, B from shared
// memory. Operands' values do not matter here, their places do.
#pragma once

#include <cstdint>

namespace attest::hardware {

/// Descriptor of a tile with 128-byte swizzle: rows of 128 bytes, eight of them 1024 bytes apart from the next eight.
__device__ inline std::uint64_t tile_descriptor(std::uint32_t smem_address, std::uint32_t leading_bytes) {
  return static_cast<std::uint64_t>((smem_address & 0x3ffff) >> 4) |
         static_cast<std::uint64_t>(leading_bytes >> 4) << 16 | std::uint64_t{1024 >> 4} << 32 | std::uint64_t{1} << 62;
}

__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Left>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}

/// d (N / 2 registers a thread) = a * b, or += where `accumulate`. TransposeB: b's rows are steps, not columns.
template <int N, bool TransposeB>
struct Wgmma;

#define ATTEST_P0 "%0,%1,%2,%3,%4,%5,%6,%7"
#define ATTEST_P1 ATTEST_P0 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define ATTEST_P2 ATTEST_P1 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define ATTEST_P3 ATTEST_P2 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define ATTEST_P5 ATTEST_P3 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define ATTEST_P4 ATTEST_P3 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define ATTEST_P7 ATTEST_P5 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define ATTEST_P10 \
  ATTEST_P7 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87"
#define ATTEST_P11 ATTEST_P10 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define ATTEST_P15                                                               \
  ATTEST_P11                                                                     \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111" \
  ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

#define ATTEST_D(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ATTEST_D8(i) ATTEST_D(i), ATTEST_D(i + 4)
#define ATTEST_D0 ATTEST_D8(0)
#define ATTEST_D3 ATTEST_D0, ATTEST_D8(8), ATTEST_D8(16), ATTEST_D8(24)
#define ATTEST_D4 ATTEST_D3, ATTEST_D8(32)
#define ATTEST_D5 ATTEST_D3, ATTEST_D8(32), ATTEST_D8(40)
#define ATTEST_D7 ATTEST_D5, ATTEST_D8(48), ATTEST_D8(56)
#define ATTEST_D10 ATTEST_D7, ATTEST_D8(64), ATTEST_D8(72), ATTEST_D8(80)
#define ATTEST_D11 ATTEST_D10, ATTEST_D8(88)
#define ATTEST_D15 ATTEST_D11, ATTEST_D8(96), ATTEST_D8(104), ATTEST_D8(112), ATTEST_D8(120)

// P: placeholders of d; D: its operands; A to E: numbers of the operands after it; T: whether b is transposed
#define ATTEST_WGMMA(N, P, D, A, B, C, E, F, G, T)                                                              \
  template <>                                                                                                   \
  struct Wgmma<N, T != 0> {                                                                                     \
    static __device__ void multiply(float* d, std::uint64_t a, std::uint64_t b, int accumulate) {               \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #C ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N         \
                   "k16.f32.bf16.bf16 {" P "}, %" #A ", %" #B ", p, 1, 1, 0, " #T ";\n}"                        \
                   : D                                                                                          \
                   : "l"(a), "l"(b), "r"(accumulate));                                                          \
    }                                                                                                           \
    static __device__ void multiply(float* d, const std::uint32_t* a, std::uint64_t b, int accumulate) {        \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #G ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N         \
                   "k16.f32.bf16.bf16 {" P "}, {%" #A ",%" #B ",%" #C ",%" #E "}, %" #F ", p, 1, 1, " #T ";\n}" \
                   : D                                                                                          \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                      \
    }                                                                                                           \
  }

ATTEST_WGMMA(64, ATTEST_P3, ATTEST_D3, 32, 33, 34, 35, 36, 37, 0);
ATTEST_WGMMA(80, ATTEST_P4, ATTEST_D4, 40, 41, 42, 43, 44, 45, 0);
ATTEST_WGMMA(96, ATTEST_P5, ATTEST_D5, 48, 49, 50, 51, 52, 53, 0);
ATTEST_WGMMA(128, ATTEST_P7, ATTEST_D7, 64, 65, 66, 67, 68, 69, 0);
ATTEST_WGMMA(176, ATTEST_P10, ATTEST_D10, 88, 89, 90, 91, 92, 93, 0);
ATTEST_WGMMA(192, ATTEST_P11, ATTEST_D11, 96, 97, 98, 99, 100, 101, 0);
ATTEST_WGMMA(64, ATTEST_P3, ATTEST_D3, 32, 33, 34, 35, 36, 37, 1);
ATTEST_WGMMA(128, ATTEST_P7, ATTEST_D7, 64, 65, 66, 67, 68, 69, 1);
ATTEST_WGMMA(192, ATTEST_P11, ATTEST_D11, 96, 97, 98, 99, 100, 101, 1);
ATTEST_WGMMA(256, ATTEST_P15, ATTEST_D15, 128, 129, 130, 131, 132, 133, 1);

}  // namespace attest::hardware
