// The only concessions to nvcc: how a role is inlined and a loop unrolled. Plain constexpr functions need no annotation
// (--expt-relaxed-constexpr).
#pragma once

#if defined(__CUDACC__)
#define ATTEST_ROLE [[gnu::always_inline]] constexpr
#define ATTEST_UNROLL _Pragma("unroll")
#define ATTEST_NO_UNROLL _Pragma("unroll 1")
#else
#define ATTEST_ROLE constexpr
#define ATTEST_UNROLL
#define ATTEST_NO_UNROLL
#endif
