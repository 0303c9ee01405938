// The only concessions to nvcc: how a role is compiled and a loop unrolled. The plan's own constexpr members need none
// (--expt-relaxed-constexpr); roles and instruction lists call operations that exist on the device alone, so they say
// so.
#pragma once

#if defined(__CUDACC__)
#define ATTEST_ROLE __host__ __device__ __forceinline__
#define ATTEST_UNROLL _Pragma("unroll")
#define ATTEST_NO_UNROLL _Pragma("unroll 1")
#else
#define ATTEST_ROLE inline
#define ATTEST_UNROLL
#define ATTEST_NO_UNROLL
#endif
