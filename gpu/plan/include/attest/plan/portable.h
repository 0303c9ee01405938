// The only concessions to nvcc: how a role is compiled and a loop unrolled. The plan's own constexpr members need none
// (--expt-relaxed-constexpr); roles and instruction lists call operations that exist on the device alone, so they say
// so. The pragmas are for the device's compiler: the host's, which reads the same file, would not know them.
#pragma once

#if defined(__CUDACC__)
#define ATTEST_ROLE __host__ __device__ __forceinline__
#define ATTEST_INLINE_LAMBDA __attribute__((always_inline))
#else
#define ATTEST_ROLE inline
#define ATTEST_INLINE_LAMBDA
#endif

#if defined(__CUDA_ARCH__)
#define ATTEST_UNROLL _Pragma("unroll")
#define ATTEST_PRAGMA(x) _Pragma(#x)
#define ATTEST_UNROLL_BY(n) ATTEST_PRAGMA(unroll n)
#define ATTEST_NO_UNROLL _Pragma("unroll 1")
#else
#define ATTEST_UNROLL
#define ATTEST_UNROLL_BY(n)
#define ATTEST_NO_UNROLL
#endif
