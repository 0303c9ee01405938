#!/usr/bin/env python3
"""What bench/hardware/registers reads off FlashAttention 2's machine code, on a kernel of one key tile's code and a loop.

    flash_code_test.py FOLDER_OF_SCRIPTS
"""

import sys
import unittest

FOLDER = sys.argv.pop()
sys.path.insert(0, FOLDER)
sys.dont_write_bytecode = True

import flash_in_torch  # noqa: E402
import unseen_in_torch  # noqa: E402
from spill_places import Kernel  # noqa: E402

CASE = (90, 64, 128, 128, 4, 0, 0, 0, 0, 0)
COPY = "LDGSTS.E.BYPASS.LTC128B.128 [R9{}], desc[UR4][{}.64]"
Q, K, V = "", "+0x4000", "+0x8000"
PRODUCT = "HMMA.16816.F32.BF16 R8, R4, R6, R8"
CODE = f"""
    @P6 BRA `(.L_x_0)
    STL [R1+0x10], R2
    @!P0 STL.64 [R1], R4
    @!P1 STL [R1+0x20], R4
    {COPY.format(Q, "R2")}
    {COPY.format(K, "R2")}
    {COPY.format(V, "R2")}
    {PRODUCT}
    @P2 BRA `(.L_x_1)
    {COPY.format(K, "R2")}
  .L_x_1
    {PRODUCT}
    @!P3 BRA `(.L_x_3)
    STL [R1+0x30], R2
  .L_x_4
    LDL R3, [R1+0x10]
    LEA R2, R3, R4, 0x1
    @!P0 {COPY.format(V, "R2")}
    {PRODUCT}
    @P4 BRA `(.L_x_5)
    @!P0 LEA R6, P5, R3, R4, 0x1
    @!P0 {COPY.format(K, "R6")}
  .L_x_5
    {PRODUCT}
    STL [R1+0x20], R7
    @P5 BRA `(.L_x_4)
  .L_x_3
    EXIT
  .L_x_0
    EXIT
"""


def kernel(text: str) -> Kernel:
    code: list[str] = []
    labels = {}
    for line in map(str.strip, text.strip().splitlines()):
        if line.startswith("."):
            labels[line] = len(code)
        else:
            code.append(line)
    return Kernel(code, labels, [])


class FlashCode(unittest.TestCase):
    def test_words_by_key_tile(self) -> None:
        """What is before the key tiles is the first's. A turn stores a word and loads one, and copies K; of what the
        first turn brings the word at its entrance is more, and no other turn's K is copied in it."""
        places, words, of_loop, in_part = flash_in_torch.places_of(kernel(CODE))
        self.assertEqual(places["first"]["stored"], 4)
        self.assertEqual((places["whole"]["stored"], places["whole"]["loaded"]), (1, 1))
        self.assertEqual((places["enters"]["stored"], places["enters"]["loaded"]), (1, 0))
        self.assertEqual((places["early"]["instructions"], places["early"]["stored"]), (2, 0))
        self.assertEqual((words, of_loop), (5, 1))
        self.assertEqual(in_part, 2, "the loop stores the third word that is under a predicate before it")

    def test_a_loop_that_multiplies_is_one(self) -> None:
        with self.assertRaisesRegex(ValueError, "0 loops multiply"):
            flash_in_torch.places_of(kernel(CODE.replace("@P5 BRA `(.L_x_4)", "NOP")))

    def test_copies_that_p0_stops(self) -> None:
        """A turn's V, from where its lanes would read, and the next K, whose addresses hang on P0."""
        places = unseen_in_torch.places_of(kernel(CODE), unseen_in_torch.copies_of(CASE))[0]
        self.assertEqual(dict(places["whole"]), {"v": 1, "k": 1, "k stale": 1})
        self.assertEqual(+places["first"], {})
        self.assertEqual(places["enters"]["k"], -1, "the first turn's K is copied ahead of it by a copy that is seen")
        self.assertEqual(places["enters"]["v"], 0)

    def test_copies_that_read_by_p0_are_not_known(self) -> None:
        text = CODE.replace(COPY.format(Q, "R2"), COPY.format(Q, "R2") + ", P0")
        with self.assertRaisesRegex(ValueError, "P0 does other than stop this copy"):
            unseen_in_torch.places_of(kernel(text), unseen_in_torch.copies_of(CASE))


if __name__ == "__main__":
    unittest.main()
