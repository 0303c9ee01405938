#!/usr/bin/env python3
"""Makes l1_local's marked load of local memory its word's last use, in its machine code.

    bench/hardware/last_uses.py build/cuda/bin/l1_local

Of LDL the compiler makes LDL.LU where it loads what it has spilled, and of no PTX. One bit tells them apart, on sm_90a
of nvcc 13.0. The load is marked by how far it stands beyond its register: 2048 bytes.
"""

import pathlib
import struct
import sys

LDL, MARK, LAST_USE = 0x983, 2048, 1 << 21  # the lower bits of the first word, its upper 24, a bit of the second one


def main() -> None:
    program = pathlib.Path(sys.argv[1])
    code, marked = bytearray(program.read_bytes()), 0
    for at in range(0, len(code) - 15, 8):
        first, second = struct.unpack_from("<QQ", code, at)
        if first & 0xFFF != LDL or first >> 40 != MARK:
            continue
        struct.pack_into("<Q", code, at + 8, second | LAST_USE)
        marked += 1
    if marked != 1:
        raise SystemExit(f"{program}: {marked} loads stand {MARK} bytes beyond their register, not one")
    program.write_bytes(code)
    print(f"{program}: its load is a last use now", file=sys.stderr)


if __name__ == "__main__":
    main()
