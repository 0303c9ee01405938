// Local memory in an SM's L1: which loads find their words there, what stores do to them, what a miss costs.
#pragma once

#include <ostream>

namespace attest::hardware {

/// One launch a row, for a profiler to count, of CTAs whose warps go through words of local memory turn after turn.
/// Words are a thread's; a word of a warp is a line of 128 bytes. `order`:
///
///   write, read        each word once a turn (`read`: written before the first turn)
///   forward, reverse   all are written, then read, the first one or the last one first
///   update             each is read, then written
///   write_behind       each is written, then the one `lag` words before it read
///   read_behind        likewise, read twice
///   chase              each holds where the next one is: one load after the other
///   spilled_forward, spilled_reverse, spilled_behind
///                      registers that the compiler spills (`words` of them): all are set, then used, first or last
///                      one first; each is used when `lag` others have been set. The compiler's loads say that it is
///                      the word's last use
///
/// Columns: order, bytes of an access, words of a frame, warps of a CTA, CTAs an SM, SMs, KiB of shared memory that
/// the CTAs of an SM take, whether they ask for no more than that to be set aside (else the driver chooses), turns,
/// lag, whether a CTA's warps begin each turn together, what they copy beside (cg, ca: 16-byte cp.async; ld: loads; st:
/// they store), lines of that a word and bytes from a row of 256 to the next, cycles of all turns but the first, mean
/// over CTAs of their longest warp.
void measure_local(std::ostream& rows);

}  // namespace attest::hardware
