#include "accesses.h"
#include "attest/hardware/device.h"

namespace attest::hardware {
namespace {

/// What an issue is given, of one lane.
struct Lane {
  std::uint32_t shared;
  const char* global;
  int go, there;
  int none;  // 0, which the compiler does not know
};

struct Load32 {
  static __device__ std::uint32_t issue(const Lane& l) {
    std::uint32_t x;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(l.shared) : "memory");
    return x;
  }
};
struct Load64 {
  static __device__ std::uint32_t issue(const Lane& l) {
    uint2 x;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(l.shared) : "memory");
    return x.x ^ x.y;
  }
};
struct Load128 {
  static __device__ std::uint32_t issue(const Lane& l) {
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(l.shared)
                 : "memory");
    return x.x ^ x.y ^ x.z ^ x.w;
  }
};
struct LoadIf32 {
  static __device__ std::uint32_t issue(const Lane& l) {
    std::uint32_t x = 0;
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p ld.shared.b32 %0, [%1];}"
                 : "+r"(x)
                 : "r"(l.shared), "r"(l.go)
                 : "memory");
    return x;
  }
};
struct LoadIf64 {
  static __device__ std::uint32_t issue(const Lane& l) {
    uint2 x{};
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; @p ld.shared.v2.b32 {%0, %1}, [%2];}"
                 : "+r"(x.x), "+r"(x.y)
                 : "r"(l.shared), "r"(l.go)
                 : "memory");
    return x.x ^ x.y;
  }
};
struct LoadIf128 {
  static __device__ std::uint32_t issue(const Lane& l) {
    uint4 x{};
    asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0; @p ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];}"
                 : "+r"(x.x), "+r"(x.y), "+r"(x.z), "+r"(x.w)
                 : "r"(l.shared), "r"(l.go)
                 : "memory");
    return x.x ^ x.y ^ x.z ^ x.w;
  }
};
struct Store32 {
  static __device__ std::uint32_t issue(const Lane& l) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(l.shared), "r"(l.shared) : "memory");
    return 0;
  }
};
struct Store64 {
  static __device__ std::uint32_t issue(const Lane& l) {
    asm volatile("st.shared.v2.b32 [%0], {%1, %1};" ::"r"(l.shared), "r"(l.shared) : "memory");
    return 0;
  }
};
struct Store128 {
  static __device__ std::uint32_t issue(const Lane& l) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(l.shared), "r"(l.shared) : "memory");
    return 0;
  }
};
struct StoreIf32 {
  static __device__ std::uint32_t issue(const Lane& l) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p st.shared.b32 [%0], %1;}" ::"r"(l.shared), "r"(l.shared),
                 "r"(l.go)
                 : "memory");
    return 0;
  }
};
struct StoreIf64 {
  static __device__ std::uint32_t issue(const Lane& l) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p st.shared.v2.b32 [%0], {%1, %1};}" ::"r"(l.shared),
                 "r"(l.shared), "r"(l.go)
                 : "memory");
    return 0;
  }
};
struct StoreIf128 {
  static __device__ std::uint32_t issue(const Lane& l) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p st.shared.v4.b32 [%0], {%1, %1, %1, %1};}" ::"r"(l.shared),
                 "r"(l.shared), "r"(l.go)
                 : "memory");
    return 0;
  }
};

#define ATTEST_MATRIX(suffix, trans, load_out, load_mix, count)                                                 \
  struct LoadMatrix##suffix {                                                                                   \
    static __device__ std::uint32_t issue(const Lane& l) {                                                      \
      std::uint32_t a, b = 0, c = 0, d = 0;                                                                     \
      asm volatile("ldmatrix.sync.aligned.m8n8." count trans ".shared.b16 " load_out ", [%4];"                  \
                   : "=r"(a), "+r"(b), "+r"(c), "+r"(d)                                                         \
                   : "r"(l.shared)                                                                              \
                   : "memory");                                                                                 \
      return a ^ b ^ c ^ d;                                                                                     \
    }                                                                                                           \
  };                                                                                                            \
  struct StoreMatrix##suffix {                                                                                  \
    static __device__ std::uint32_t issue(const Lane& l) {                                                      \
      asm volatile("stmatrix.sync.aligned.m8n8." count trans ".shared.b16 [%0], " load_mix ";" ::"r"(l.shared), \
                   "r"(l.shared)                                                                                \
                   : "memory");                                                                                 \
      return 0;                                                                                                 \
    }                                                                                                           \
  };
ATTEST_MATRIX(X1, "", "{%0}", "{%1}", "x1")
ATTEST_MATRIX(X2, "", "{%0, %1}", "{%1, %1}", "x2")
ATTEST_MATRIX(X4, "", "{%0, %1, %2, %3}", "{%1, %1, %1, %1}", "x4")
ATTEST_MATRIX(X1Trans, ".trans", "{%0}", "{%1}", "x1")
ATTEST_MATRIX(X2Trans, ".trans", "{%0, %1}", "{%1, %1}", "x2")
ATTEST_MATRIX(X4Trans, ".trans", "{%0, %1, %2, %3}", "{%1, %1, %1, %1}", "x4")
#undef ATTEST_MATRIX

struct Copy16 {
  static __device__ std::uint32_t issue(const Lane& l) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(l.shared), "l"(l.global) : "memory");
    return 0;
  }
};
struct CopyOrZero16 {
  static __device__ std::uint32_t issue(const Lane& l) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(l.shared), "l"(l.global),
                 "r"(l.there != 0 ? 16 : 0)
                 : "memory");
    return 0;
  }
};
struct CopyIf16 {
  static __device__ std::uint32_t issue(const Lane& l) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16;}" ::"r"(l.shared),
        "l"(l.global), "r"(l.go)
        : "memory");
    return 0;
  }
};
struct CopyIfOrZero16 {
  static __device__ std::uint32_t issue(const Lane& l) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %3, 0; @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;}" ::"r"(
            l.shared),
        "l"(l.global), "r"(l.there != 0 ? 16 : 0), "r"(l.go)
        : "memory");
    return 0;
  }
};
/// Four copies alike, whose predicates the compiler cannot take for one: they are in as many registers, P0 to P3.
template <class Copy>
struct Four {
  static __device__ std::uint32_t issue(const Lane& l) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      Lane of_one = l;
      of_one.go += i * l.none, of_one.there += i * l.none;
      Copy::issue(of_one);
      asm volatile("cp.async.wait_all;" ::: "memory");
    }
    return 0;
  }
};
template <int Bytes>
struct NarrowCopyOrZero {
  static __device__ std::uint32_t issue(const Lane& l) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(l.shared), "l"(l.global),
                 "r"(l.there != 0 ? Bytes : 0), "n"(Bytes)
                 : "memory");
    return 0;
  }
};

/// `shared_step` is 0, which the compiler does not know: no issue can be taken for the one before.
template <class Instruction>
__global__ void __launch_bounds__(32) probe_access(const __grid_constant__ LaneAddresses lanes, const char* global,
                                                   std::uint32_t shared_step, int repeats, std::uint32_t* out) {
  extern __shared__ __align__(1024) char memory[];
  const unsigned lane = threadIdx.x;
  Lane l{static_cast<std::uint32_t>(__cvta_generic_to_shared(memory)) + lanes.shared[lane], global + lanes.global[lane],
         static_cast<int>(lanes.active >> lane & 1), static_cast<int>(lanes.present >> lane & 1),
         static_cast<int>(shared_step)};
  std::uint32_t mixed = 0;
#pragma unroll 4
  for (int i = 0; i < repeats; ++i) {
    mixed ^= Instruction::issue(l);
    asm volatile("cp.async.wait_all;" ::: "memory");  // two copies to one place under way: fewer bytes are counted
    l.shared += shared_step;
    l.global += kAccessGlobalStep;
  }
  if (shared_step != 0) *out = mixed;
}

constexpr AccessInstruction instructions[] = {
    {"ld.32", 4, probe_access<Load32>},
    {"ld.64", 8, probe_access<Load64>},
    {"ld.128", 16, probe_access<Load128>},
    {"st.32", 4, probe_access<Store32>},
    {"st.64", 8, probe_access<Store64>},
    {"st.128", 16, probe_access<Store128>},
    {"@p ld.32", 4, probe_access<LoadIf32>},
    {"@p ld.64", 8, probe_access<LoadIf64>},
    {"@p ld.128", 16, probe_access<LoadIf128>},
    {"@p st.32", 4, probe_access<StoreIf32>},
    {"@p st.64", 8, probe_access<StoreIf64>},
    {"@p st.128", 16, probe_access<StoreIf128>},
    {"ldmatrix.x1", 16, probe_access<LoadMatrixX1>},
    {"ldmatrix.x2", 16, probe_access<LoadMatrixX2>},
    {"ldmatrix.x4", 16, probe_access<LoadMatrixX4>},
    {"ldmatrix.x1.trans", 16, probe_access<LoadMatrixX1Trans>},
    {"ldmatrix.x2.trans", 16, probe_access<LoadMatrixX2Trans>},
    {"ldmatrix.x4.trans", 16, probe_access<LoadMatrixX4Trans>},
    {"stmatrix.x1", 16, probe_access<StoreMatrixX1>},
    {"stmatrix.x2", 16, probe_access<StoreMatrixX2>},
    {"stmatrix.x4", 16, probe_access<StoreMatrixX4>},
    {"stmatrix.x1.trans", 16, probe_access<StoreMatrixX1Trans>},
    {"stmatrix.x2.trans", 16, probe_access<StoreMatrixX2Trans>},
    {"stmatrix.x4.trans", 16, probe_access<StoreMatrixX4Trans>},
    {"cp.async.16", 16, probe_access<Copy16>},
    {"cp.async.16 or zero", 16, probe_access<CopyOrZero16>},
    {"@p cp.async.16", 16, probe_access<CopyIf16>},
    {"@p cp.async.16 or zero", 16, probe_access<CopyIfOrZero16>},
    {"four cp.async.16 or zero", 16, probe_access<Four<CopyOrZero16>>},
    {"four @p cp.async.16", 16, probe_access<Four<CopyIf16>>},
    {"four @p cp.async.16 or zero", 16, probe_access<Four<CopyIfOrZero16>>},
    {"cp.async.8 or zero", 8, probe_access<NarrowCopyOrZero<8>>},
    {"cp.async.4 or zero", 4, probe_access<NarrowCopyOrZero<4>>},
};

}  // namespace

std::span<const AccessInstruction> access_instructions() { return instructions; }

void issue_accesses(const AccessInstruction& instruction, const LaneAddresses& lanes, int ctas, int repeats,
                    const char* global, std::uint32_t* out, cudaStream_t stream) {
  instruction.kernel<<<ctas, 32, kAccessSmemBytes, stream>>>(lanes, global, 0, repeats, out);
  check(cudaGetLastError());
}

}  // namespace attest::hardware
