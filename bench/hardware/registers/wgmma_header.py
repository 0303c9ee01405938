"""Writes wgmma.cuh: wgmma<n>, the bf16 products of 64 x n x 16, whose operands are n / 2 accumulators a thread."""


def wgmma(n):
    x = n // 2
    accumulators = ", ".join(f"%{i}" for i in range(x))
    operands = ", ".join(f'"+f"(c[{i // 4}][{i % 4}])' for i in range(x))
    shape = f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {{{accumulators}}}"
    return f"""template <>
struct wgmma<{n}> {{
  using C = float[{n // 8}][4];
  using Descriptor = unsigned long long;
  __device__ static void from_shared(C& c, Descriptor a, Descriptor b, bool add) {{
    asm volatile(
        "{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{x + 2}, 0;\\n{shape}, %{x}, %{x + 1}, p, 1, 1, 0, 0;\\n}}"
        : {operands} : "l"(a), "l"(b), "r"(static_cast<int>(add)));
  }}
  __device__ static void from_shared_transposed(C& c, Descriptor a, Descriptor b) {{
    asm volatile("{shape}, %{x}, %{x + 1}, 1, 1, 1, 0, 1;" : {operands} : "l"(a), "l"(b));
  }}
  __device__ static void from_registers_transposed(C& c, const unsigned (&a)[4], Descriptor b) {{
    asm volatile("{shape}, {{%{x}, %{x + 1}, %{x + 2}, %{x + 3}}}, %{x + 4}, 1, 1, 1, 1;"
                 : {operands} : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  }}
}};
"""


def header():
    return "#pragma once\ntemplate <int n>\nstruct wgmma;\n" + "".join(wgmma(n) for n in range(16, 257, 16))
