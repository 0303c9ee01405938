#!/usr/bin/env python3
"""Has FlashAttention 3's forward note clocks, where its caller passes a buffer as q's scale (which bf16 does not read).

    bench/hardware/fa3_clocks/instrument.py PATH/TO/flash-attention/hopper       # a checkout to be thrown away

A CTA's buffer is 16,384 64-bit words (fa3_clocks.cu): its SM, clocks of its start and end; from word 64 on four words a
key tile: when K and V were asked for, which tile it is, and after a query tile's last one when its products were done.
"""

import pathlib
import sys

AT = "64 + 4 * static_cast<int>({}.count()) + {}"
TILE = " | ".join(["static_cast<long long>(n_block)"] + [
    f"static_cast<long long>(get<{i}>(block_coord)) << {16 * (i + 1)}" for i in range(3)
])


def note(params: str, at: str, value: str = "clock64()", when: str = "true") -> str:
    words = f"reinterpret_cast<long long*>(const_cast<float*>({params}.ptr_q_descale))"
    return (
        f"if ({params}.ptr_q_descale != nullptr && {when})"
        f" ({words} + static_cast<long long>(blockIdx.x) * 16384)[{at}] = {value};\n"
    )


def insert(path: pathlib.Path, after: str, text: str, follows: str = "") -> None:
    """Puts `text` behind the only place where `after` is followed by `follows`."""
    source = path.read_text()
    if source.count(after + follows) != 1:
        raise SystemExit(f"{path}: {source.count(after + follows)} places like {after!r}")
    path.write_text(source.replace(after + follows, after + text + follows))


def main() -> None:
    root = pathlib.Path(sys.argv[1])
    mainloop, kernel = root / "mainloop_fwd_sm90_tma_gmma_ws.hpp", root / "flash_fwd_kernel_sm90.h"
    k, v = (AT.format("smem_pipe_write", i) for i in (0, 1))
    insert(
        mainloop,
        "pipeline_k.producer_acquire(smem_pipe_write);\n",
        note("params", k) + note("params", AT.format("smem_pipe_write", 2), TILE),
        "            if constexpr (!PagedKVNonTMA) {\n                auto [n_block_idx, bidb_kv_idx] = paged_kv_manager.get_indices_for_K",
    )
    insert(mainloop, "pipeline_v_load.producer_acquire(smem_pipe_write);\n", note("params", v))
    sm = 'unsigned sm = 0; asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));\n'
    insert(
        kernel,
        "*reinterpret_cast<SharedStorage*>(smem_buf);\n",
        "if (threadIdx.x == 0) {\n" + sm + note("params.mainloop", "0", "sm") + note("params.mainloop", "1") + "}\n",
        "\n        int const lane_predicate",
    )
    first = "threadIdx.x == MmaThreadOffset"
    done = note("params.mainloop", AT.format("smem_pipe_read", -1), when=first)
    insert(kernel, "", done, "                // Do this here before the epilogue so that the next tile is ready to go.\n")
    insert(kernel, "            epilogue.store_tail();\n", note("params.mainloop", "2", when=first))


if __name__ == "__main__":
    main()
