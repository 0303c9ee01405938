#!/usr/bin/env python3
"""Compiles gpu/sm80's own forward and writes what ptxas says of it as CSV: the instantiations that the library holds
with its ablations, or a grid of other tiles.

    compile_gpu_sm80.py library > simulator/measured/registers_gpu_sm80.csv      some 8 minutes on one core
    compile_gpu_sm80.py grid > simulator/measured/registers_gpu_sm80_grid.csv    some 20 minutes

Both for sm_80 and sm_90, bf16 (fp16 takes the same registers). Tiles and kinds of the library by number, as
sm80_tiles.h has them, and the words that its kernels store and load by place and the instructions that do, as
spill_places.py has them (with an nvdisasm of nvcc's release or later).
"""
import argparse
import datetime
import hashlib
import itertools
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import spill_places
from compile_flash_attention import said_of

root = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
FLAGS = ["-std=c++20", "-O2", "-cubin", "-Xptxas", "-v", "--prec-div=false", "--expt-relaxed-constexpr"]
INCLUDES = ["gpu/sm80/include", "gpu/sm80", "gpu/ptx/include", "reference/problem/include", "gpu/device/include", "gpu/include",
            "gpu/plan/include", "gpu/cuda/include"]
ARCHITECTURES = ("sm_80", "sm_90")
GRID_COLUMNS = "kind,headdim,headdim_v,tile_m,tile_n,num_warps,stages,merged_wait,q_in_registers,min_ctas"
GRID_CONFIG = """#include "forward_kernel.cuh"
namespace attest::sm80 {
template <int kind_, int headdim, int headdim_v, int tile_m, int tile_n, int warps, int stages, int merged, int query, int ctas>
struct GridConfig {
  static constexpr Dtype dtype = Dtype::bf16;
  static constexpr Sm80Kind kind = static_cast<Sm80Kind>(kind_);
  using Plan = LaunchPlan<kind>;
  static constexpr KernelPlan shape() {
    KernelPlan p;
    p.lazy_rescale = true;
    p.headdim = p.padded_headdim = headdim, p.headdim_v = p.padded_headdim_v = headdim_v;
    p.tile_m = tile_m, p.tile_n = tile_n, p.num_warps = warps, p.stages = stages;
    p.merged_wait = merged, p.q_in_registers = query;
    return p;
  }
  static constexpr KernelPlan plan = shape();
  static constexpr int min_ctas = ctas;
};
"""


def read(path):
    with open(os.path.join(root, path), encoding="utf-8") as text:
        return text.read()


def tiles():
    names = re.search(r"enum class Sm80Tile[^{]*\{([^}]*)\}", read("gpu/plan/include/attest/plan/sm80_tiles.h")).group(1)
    return names.replace(" ", "").split(",")


def library():
    """(tile, kind) -> source of one kernel, from the explicit instantiations beside the kernel; the ablations' own
    source, as the tile and kind that they are of, at the end."""
    sources = {}
    for name in sorted(os.listdir(os.path.join(root, "gpu/sm80"))):
        if not re.fullmatch(r"forward_\w+\.cu", name):
            continue
        for tile, kind in re.findall(r"forward_function<Dtype::bf16, Sm80Tile::(\w+), Sm80Kind::(\w+)>", read(f"gpu/sm80/{name}")):
            sources[tiles().index(tile), int(kind == "general")] = (
                '#include "forward_kernel.cuh"\nnamespace attest::sm80 {\ntemplate const void* forward_function<'
                f"Dtype::bf16, Sm80Tile::{tile}, Sm80Kind::{kind}>();\n}}\n")
    ablations = read("gpu/sm80/forward_ablations.cu")
    tile, kind = re.search(r": Config<Dtype::bf16, Sm80Tile::(\w+), Sm80Kind::(\w+)>", ablations).groups()
    return [*sources.items(), ((tiles().index(tile), int(kind == "general")), ablations)]


def plan_of(function):
    """The name that the simulator has for a kernel's plan."""
    ablation = re.search(r"Sm80AblationE(\d+)", function)
    names = re.findall(r'\{"(sm80-[\w-]+)"', read("gpu/plan/include/attest/plan/sm80_ablations.h"))
    return names[int(ablation[1])] if ablation else "attest"


def grid():
    rows = []
    for kind, headdim, (tile_m, warps), tile_n, stages, query, ctas in itertools.product(
            (0, 1), (64, 96, 128, 192, 256), ((64, 4), (128, 4), (128, 8)), (32, 64, 128), (1, 2), (0, 1), (1, 2)):
        words = tile_m // warps // 16 * (headdim + tile_n) // 2
        if words > 240 or words < 64 or ctas * warps > 8 or headdim * 2 * (tile_m + 2 * stages * tile_n) > (163 << 10) // ctas:
            continue
        rows.append((kind, headdim, headdim, tile_m, tile_n, warps, stages, int(stages == 2 and query), query, ctas))
    rows.sort(key=lambda row: hashlib.sha256(repr(row).encode()).digest())
    return [(row, f"{GRID_CONFIG}template __global__ void forward_kernel<GridConfig<{', '.join(map(str, row))}>>("
                  "const __grid_constant__ ForwardParams);\n}\n") for row in rows]


def compile_rows(nvcc, nvdisasm, folder, arch, row, source):
    """A row for each kernel of a source; with the places of what it spills where `nvdisasm` is given."""
    path = os.path.join(folder, f"{arch}_{'_'.join(map(str, row))}_{hashlib.sha256(source.encode()).hexdigest()[:8]}.cu")
    with open(path, "w", encoding="utf-8") as out:
        out.write(source)
    command = [nvcc, *FLAGS, f"-arch={arch}", *(f"-I{os.path.join(root, i)}" for i in INCLUDES), "-o", path + "bin", path]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stderr)
    said = {name: what for name, what in said_of(result.stderr).items() if "forward_kernel" in name}
    if nvdisasm is None:
        return [(arch[3:], *row, *what) for what in said.values()]
    listed = spill_places.kernels(nvdisasm, path + "bin")
    kernels, code_bytes = dict(listed), code_bytes_of(listed)
    words = {name: itertools.chain(*spill_places.places(kernels[name]).values()) for name in said}
    return [(arch[3:], *row, *said[name], *words[name], code_bytes[name], plan_of(name)) for name in sorted(said)]


def code_bytes_of(listed):
    """Of each kernel, with the functions behind it that it calls."""
    sizes, section = {}, ""
    for name, kernel in listed:
        if not name.startswith("$"):
            section = name
        sizes[section] = sizes.get(section, 0) + 16 * len(kernel.code)
    return sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=("library", "grid"))
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--rows", type=int, default=48, help="of the grid, in the order of a hash")
    parser.add_argument("--keep", help="folder for the sources and cubins")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    of_library = args.which == "library"
    sources = library() if of_library else grid()[:args.rows]
    version = re.search(r"release [\d.]+, (V[\d.]+)", subprocess.check_output([args.nvcc, "--version"], text=True)).group(1)
    print(f"# nvcc {version} {' '.join(FLAGS)}; {datetime.date.today()}; {os.path.basename(__file__)} {args.which}")
    places = [f"{place}_{what}" for place in spill_places.PLACES for what in ("stored", "loaded", "stores", "loads")]
    shape, behind = ("tile,kind", [*places, "code_bytes", "plan"]) if of_library else (GRID_COLUMNS, [])
    print(",".join(["arch", shape, "registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes", *behind]), flush=True)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(args.jobs) as pool:
        jobs = [(arch, row, source) for row, source in sources for arch in ARCHITECTURES]
        for rows in pool.map(lambda job: compile_rows(args.nvcc, args.nvdisasm if of_library else None, args.keep or scratch, *job), jobs):
            for row in rows:
                print(",".join(map(str, row)), flush=True)


if __name__ == "__main__":
    main()
