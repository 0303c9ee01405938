#!/usr/bin/env python3
"""Compiles FlashAttention's forwards from its sources and writes what ptxas says of each as CSV.

    compile_flash_attention.py fa2 --sources FA/csrc/flash_attn/src --cutlass CUTLASS/include [--arch sm_90]
    compile_flash_attention.py fa3 --sources FA/hopper --cutlass CUTLASS/include

FA and CUTLASS are checkouts of flash-attention and of the CUTLASS it names; nothing of them is kept here. FlashAttention 2
asks PyTorch for its random numbers' state and for checks of launches; a few lines stand in for these. Rows come as they
are compiled; --jobs sources at a time.
"""
import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

STAND_INS = {
    "ATen/cuda/PhiloxCudaState.h":
        "#pragma once\n#include <cstdint>\n#include <tuple>\nnamespace at {\nstruct PhiloxCudaState {\n"
        "  std::uint64_t seed, offset;\n};\n"
        "namespace cuda::philox {\n__host__ __device__ inline std::tuple<std::uint64_t, std::uint64_t> unpack("
        "PhiloxCudaState s) {\n  return {s.seed, s.offset};\n}\n}  // namespace cuda::philox\n}  // namespace at\n",
    "ATen/cuda/detail/UnpackRaw.cuh": "#pragma once\n",
    "c10/cuda/CUDAException.h":
        "#pragma once\n#define C10_CUDA_CHECK(x) (x)\n#define C10_CUDA_KERNEL_LAUNCH_CHECK()\n",
}


@dataclass
class Kernel:
    row: tuple  # the CSV's columns before what ptxas says
    instantiation: str
    constants: tuple  # of its mangled name, as `constants_of` finds them


@dataclass
class Family:
    header: str
    columns: str
    flags: list
    sources: dict  # a name -> its kernels
    constants_of: object


def numbers(name):
    return [int(x) for x in re.findall(r"L[ib](\d+)E", name)]


# ---- FlashAttention 2: by tile (headdim, tile_m, tile_n, warps), with the features its launches combine
FA2_TILES = ((32, 128, 128, 4), (64, 128, 128, 4), (96, 128, 64, 4), (96, 64, 64, 4), (128, 128, 64, 4), (128, 128, 32, 4),
             (128, 64, 64, 4), (192, 128, 64, 8), (256, 64, 64, 4), (256, 128, 64, 8))
# causal, local, alibi, whole tiles, whole rows, softcap
FA2_FEATURES = ((0, 0, 0, 1, 1, 0), (0, 0, 0, 0, 1, 0), (1, 0, 0, 1, 1, 0), (1, 0, 0, 0, 1, 0), (0, 1, 0, 0, 1, 0),
                (1, 0, 1, 0, 0, 0), (0, 0, 0, 0, 1, 1), (1, 0, 0, 0, 0, 0))


def fa2(tiles=FA2_TILES):
    sources = {}
    for tile in tiles:
        kernels = []
        for features in FA2_FEATURES:
            if features[3] and tile[0] > 128:  # its launches do not know whole tiles there
                continue
            flags = (0, *features, 0)  # dropout first, returned probabilities last
            traits = f"Flash_fwd_kernel_traits<{', '.join(map(str, tile))}, 0, 0, cutlass::bfloat16_t>"
            kernels.append(Kernel(
                (*tile, *features), f"template __global__ void FLASH_NAMESPACE::flash_fwd_kernel<{traits}, "
                f"{', '.join(map(str, flags))}>(__grid_constant__ const FLASH_NAMESPACE::Flash_fwd_params);", (*tile, *flags)))
        sources["x".join(map(str, tile))] = kernels

    def constants_of(name):
        x = numbers(name)
        return (*x[:4], *x[-8:])

    return Family("flash_fwd_launch_template.h", "headdim,tile_m,tile_n,num_warps,causal,local,alibi,even_mn,even_k,softcap",
                  ["-std=c++17", "-O3", "--use_fast_math", "--expt-relaxed-constexpr", "--expt-extended-lambda"], sources,
                  constants_of)


# ---- FlashAttention 3: by head dimensions; causal, local, softcap, varlen, paged, packed groups, splits, cluster
FA3_FULL, FA3_PAIR, FA3_CAUSAL = (0, 0, 0, 0, 0, 0, 0, 1), (0, 0, 0, 0, 0, 0, 0, 2), (1, 0, 0, 0, 0, 0, 0, 1)
FA3_LOCAL, FA3_SOFTCAP, FA3_VARLEN = (0, 1, 0, 0, 0, 0, 0, 1), (1, 0, 1, 0, 0, 0, 0, 1), (1, 0, 0, 1, 0, 0, 0, 1)
FA3_VARLEN_FULL, FA3_PAGED = (0, 0, 0, 1, 0, 0, 0, 1), (1, 0, 0, 1, 1, 0, 0, 1)
FA3_PACKED, FA3_SPLIT = (1, 0, 0, 0, 0, 1, 0, 1), (0, 0, 0, 0, 0, 0, 1, 1)
FA3_GRID = {(128, 128): (FA3_FULL, FA3_PAIR, FA3_CAUSAL, FA3_LOCAL, FA3_SOFTCAP, FA3_VARLEN, FA3_VARLEN_FULL, FA3_PACKED,
                         FA3_SPLIT, FA3_PAGED),
            (64, 64): (FA3_FULL, FA3_CAUSAL, FA3_LOCAL, FA3_SOFTCAP, FA3_VARLEN, FA3_SPLIT),
            (256, 256): (FA3_FULL, FA3_PAIR, FA3_CAUSAL, FA3_LOCAL, FA3_VARLEN),
            (192, 128): (FA3_FULL, FA3_CAUSAL, FA3_VARLEN),
            (96, 96): (FA3_FULL, FA3_CAUSAL, FA3_LOCAL, FA3_VARLEN),
            (192, 192): (FA3_PAIR, FA3_CAUSAL, FA3_LOCAL)}


def fa3():
    sources = {}
    for (headdim, headdim_v), grid in FA3_GRID.items():
        kernels = []
        for causal, local, softcap, varlen, paged, packed, split, cluster in grid:
            arguments = (90, headdim, headdim_v, cluster, "cutlass::bfloat16_t", "cutlass::bfloat16_t", causal, local, softcap,
                         varlen, paged, 0, 0, packed, split, 0)
            kernels.append(Kernel(
                (headdim, headdim_v, causal, local, softcap, varlen, paged, packed, split, cluster),
                f"template void run_flash_fwd<{', '.join(map(str, arguments))}>(Flash_fwd_params&, cudaStream_t);",
                (causal, local, softcap, varlen, paged, packed, split, cluster)))
        sources[f"{headdim}v{headdim_v}"] = kernels

    def constants_of(name):
        mainloop = name[name.index("CollectiveMainloopFwdSm90"):]
        x = numbers(mainloop[mainloop.index("Sm90ELb"):])
        return (*x[:5], x[9], x[10], 2 if re.match(r"CollectiveMainloopFwdSm90ILi2EN4cute5tupleIJNS\w_1CILi2E", mainloop) else 1)

    return Family("flash_fwd_launch_template.h", "headdim,headdim_v,causal,local,softcap,varlen,paged,packed,split,cluster",
                  ["-std=c++17", "-O3", "--use_fast_math", "--expt-relaxed-constexpr", "--expt-extended-lambda", "-DNDEBUG",
                   "-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED", "-DCUTLASS_ENABLE_GDC_FOR_SM90",
                   "-DCUTLASS_DEBUG_TRACE_LEVEL=0"], sources, constants_of)


def said_of(text):
    """Mangled name -> registers, stack bytes, bytes of spill stored and loaded."""
    found = {}
    for entry in re.split(r"Compiling entry function '", text)[1:]:
        name = entry[:entry.index("'")]
        stack = [int(x) for x in re.search(
            re.escape(f"properties for {name}") + r"\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+)", entry).groups()]
        found[name] = (int(re.search(r"Used (\d+) registers", entry).group(1)), *stack)
    return found


def compile_source(command, family, kernels, name, folder):
    path = os.path.join(folder, f"{name}.cu")
    with open(path, "w", encoding="utf-8") as out:
        out.write(f'#include "{family.header}"\n' + "\n".join(k.instantiation for k in kernels) + "\n")
    result = subprocess.run([*command, "-o", os.path.join(folder, f"{name}.cubin"), path], capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{name}: {result.stderr}")
    said = {family.constants_of(name): what for name, what in said_of(result.stderr).items() if "fwd" in name.lower()}
    return [(*kernel.row, *said[kernel.constants]) for kernel in kernels]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=("fa2", "fa3"))
    parser.add_argument("--sources", required=True)
    parser.add_argument("--cutlass", required=True)
    parser.add_argument("--arch", help="default: sm_80, sm_90a")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--only", default="", help="regular expression of the sources' names (headdim first)")
    parser.add_argument("--tiles", help="of fa2, in place of its ten: HEADDIMxROWSxKEYSxWARPS,...")
    parser.add_argument("--keep", help="folder for the sources and cubins")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    tiles = [tuple(map(int, tile.split("x"))) for tile in args.tiles.split(",")] if args.tiles else FA2_TILES
    family = fa2(tiles) if args.family == "fa2" else fa3()
    arch = args.arch or {"fa2": "sm_80", "fa3": "sm_90a"}[args.family]
    said = subprocess.check_output([args.nvcc, "--version"], text=True)
    version = re.search(r"release [\d.]+, (V[\d.]+)", said).group(1)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(args.jobs) as pool:
        for name, text in STAND_INS.items():
            os.makedirs(os.path.dirname(os.path.join(scratch, name)), exist_ok=True)
            with open(os.path.join(scratch, name), "w", encoding="utf-8") as out:
                out.write(text)
        flags = [*family.flags, f"-arch={arch}", "-cubin", "-w", "-Xptxas", "-v"]
        command = [args.nvcc, *flags, f"-I{scratch}", f"-I{args.sources}", f"-I{args.cutlass}"]
        print(f"# nvcc {version} {' '.join(flags)}; {datetime.date.today()}; {os.path.basename(__file__)} {args.family} --arch {arch}")
        print(f"arch,{family.columns},registers,stack_bytes,spill_store_bytes,spill_load_bytes", flush=True)
        jobs = [pool.submit(compile_source, command, family, kernels, name, args.keep or scratch)
                for name, kernels in family.sources.items() if re.match(args.only, name)]
        for job in as_completed(jobs):
            try:
                for row in job.result():
                    print(",".join(str(x) for x in (re.sub(r"\D", "", arch), *row)), flush=True)
            except RuntimeError as error:
                print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
