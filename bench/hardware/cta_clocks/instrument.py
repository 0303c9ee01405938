#!/usr/bin/env python3
"""Has gpu/sm80's kernels note when each CTA begins, and where; notes of their ends would change their machine code.

    bench/hardware/cta_clocks/instrument.py PATH/TO/attest       # a checkout to be thrown away

`attest` built of it writes, where ATTEST_CLOCKS names a file, two 64-bit words a CTA there after each forward: the
global timer in ns at its begin, and its SM. leads.py reads them.
"""

import pathlib
import sys

CTAS = 16384
NOTES = f"""#include <cstdio>
#include <cstdlib>
namespace attest::sm80 {{
using WriteClocks = void (*)();
void add_clocks(WriteClocks);
static __device__ unsigned long long cta_clocks[{CTAS}][2];
static __device__ __forceinline__ void note_clock() {{
  unsigned long long now;
  unsigned sm;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  const unsigned cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  if (threadIdx.x != 0 || cta >= {CTAS}) return;
  cta_clocks[cta][0] = now;
  cta_clocks[cta][1] = sm;
}}
static void write_clocks() {{
  static unsigned long long host[{CTAS}][2];
  cudaDeviceSynchronize();
  cudaMemcpyFromSymbol(host, cta_clocks, sizeof host);
  int ctas = 0;
  while (ctas < {CTAS} && host[ctas][0] != 0) ++ctas;
  if (ctas == 0) return;
  FILE* file = fopen(getenv("ATTEST_CLOCKS"), "wb");
  fwrite(host, sizeof host[0], ctas, file);
  fclose(file);
}}
static const bool clocks_added = (add_clocks(&write_clocks), true);
"""
CALLERS = """#include <cstdlib>
#include <vector>
namespace attest::sm80 {
static std::vector<void (*)()>& clocks() {
  static std::vector<void (*)()> all;
  return all;
}
void add_clocks(void (*write)()) { clocks().push_back(write); }
"""
LAUNCHED = '  launch("sm80 forward", function, grid, plan.threads(), plan.smem_bytes(), params, stream);\n'


def put(path: pathlib.Path, place: str, text: str) -> None:
    source = path.read_text()
    if source.count(place) != 1:
        raise SystemExit(f"{path}: {source.count(place)} places like {place!r}")
    path.write_text(source.replace(place, text))


def main() -> None:
    sm80 = pathlib.Path(sys.argv[1]) / "gpu/sm80"
    kernel, launch = sm80 / "forward_kernel.cuh", sm80 / "launch.cpp"
    begin = "  constexpr KernelPlan shape = Cfg::plan;\n"
    put(kernel, begin, "  note_clock();\n" + begin)
    put(kernel, "namespace attest::sm80 {\n\ntemplate <Dtype T, Sm80Tile Tile", NOTES + "\ntemplate <Dtype T, Sm80Tile Tile")
    put(launch, "namespace attest::sm80 {\nnamespace {", CALLERS + "namespace {")
    put(launch, LAUNCHED, LAUNCHED + '  if (getenv("ATTEST_CLOCKS")) for (auto write : clocks()) write();\n')


if __name__ == "__main__":
    main()
