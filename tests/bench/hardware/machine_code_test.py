#!/usr/bin/env python3
"""Scripts of bench/hardware that read machine code, on short listings as cuobjdump lays them out.

    machine_code_test.py FOLDER_OF_SCRIPTS
"""

import pathlib
import subprocess
import sys
import unittest

LISTINGS = pathlib.Path(__file__).parent
scripts = pathlib.Path()


def listing(name: str) -> str:
    return (LISTINGS / name).read_text()


def run(script: str, text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", scripts / script]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


class MachineCode(unittest.TestCase):
    def assert_prints(self, script: str, text: str, rows: list[str]) -> None:
        ran = run(script, text)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(ran.stdout.splitlines(), rows)

    def test_fetch_paths(self) -> None:
        """A turn of `fetch` stalls for 4 + 4 + 2 + 5 + 5 cycles, waits 17.4 for MUFU and jumps, 4.7. One of `jumps`
        goes over the products behind its first branch, but not over the MOV behind its second: 4 + 4 + 5 + 2 + 5 + 1
        + 5 and two jumps."""
        rows = ["benchmark,block,skipped,blocks,jump,lines,cycles", "fetch,4,0,,,1,42", "jumps,2,5,1,uniform,2,35"]
        self.assert_prints("fetch_paths.py", listing("probes.sass"), rows)

    def test_unseen_copies(self) -> None:
        """With one slot V's copies stand before a loop's first product, K's behind it; with two each is half of those
        before, K first. Before the loops Q is copied, then K, then V. Copies of 8 bytes, other predicates and @!P0 are
        seen, and so are places without a row. Kernels of fp16 are not asked about."""
        rows = [
            "arch,tile,kind,plan,operand,place,copies,nothing,zeros,whole",
            "90,2,0,attest,v,masked,3,1,0,0",
            "90,2,0,attest,v,whole,2,2,0,0",
            "90,2,0,attest,k,whole,2,1,0,0",
            "90,0,1,attest,v,masked,2,1,1,0",
            "90,0,1,attest,k,masked,2,1,0,1",
            "90,0,1,attest,q,before,1,0,1,0",
            "90,0,1,attest,k,before,1,0,0,1",
            "90,0,1,attest,v,before,1,0,1,0",
        ]
        self.assert_prints("unseen_copies.py", listing("forward.sass"), rows)

    def test_warp_alone_says_what_a_listing_lacks(self) -> None:
        for text, lacks in ((listing("forward.sass"), "no two loops over key tiles"), ("\tcode for sm_90a\n", "none of")):
            ran = run("warp_alone.py", text)
            self.assertEqual((ran.returncode, ran.stdout), (1, ""))
            self.assertIn(lacks, ran.stderr)
            self.assertEqual(len(ran.stderr.splitlines()), 1)

    def test_a_listing_is_of_one_architecture(self) -> None:
        code = listing("forward.sass")
        for text, found in ((code + code.replace("sm_90", "sm_80"), "[80, 90]"), ("", "nothing")):
            ran = run("unseen_copies.py", text)
            self.assertEqual((ran.returncode, ran.stdout), (1, ""))
            self.assertIn(f"a listing of code for {found} is not one of one architecture", ran.stderr)


if __name__ == "__main__":
    scripts = pathlib.Path(sys.argv.pop())
    unittest.main()
