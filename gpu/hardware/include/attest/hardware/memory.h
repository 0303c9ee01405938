// Latency and bandwidth of shared memory, L2 and DRAM. All throw std::runtime_error with CUDA's words where a call of
// it fails: 2 GiB must be free for those of DRAM.
#pragma once

#include <cstdint>
#include <vector>

namespace attest::hardware {

/// Cycles from a load of 4 bytes to the use of what it brought, one thread, each load waiting for the one before.
double smem_latency_cycles();
/// Likewise of loads past L1 by a thread of each SM, the mean over SMs, which are nearer to some slices of L2 than to
/// others, of lines of its own in random order that it has read before: 2 to 4 MiB together, at most a quarter of L2.
double l2_latency_cycles();

/// Cycles until a warp has all of `lines` lines that it loads together, each of another page and written by others: of
/// eight such groups one after the other the mean over `ctas` CTAs of a warp each, and the most of a CTA.
struct LinesTogether {
  int lines = 0, ctas = 0;
  double mean = 0, most = 0;
};
/// Of 1 to 16 lines, by so many CTAs, three times each: lines that L2 has, and of those no more than half of it, or
/// that only DRAM has.
std::vector<LinesTogether> lines_together(bool in_l2, const std::vector<int>& ctas);

/// Bytes a second that all SMs together copy to shared memory (cp.async) of 8 MiB (at most a quarter of L2) again and
/// again.
double l2_bytes_per_second();
/// Likewise that they write, again and again.
double l2_write_bytes_per_second();

/// Bytes a second of 2 GiB that all SMs read once, 16 bytes a lane past L1, and that a copy of one half to the other
/// reads and writes: the fastest eighth of 200 times each, a tenth of a second. After memory was freed, by this process
/// or another, the GPU seems to clear it in the background, a GiB in 2.5 ms, and until then copies are a tenth slower:
/// of up to 80 GiB this does not hang on it.
struct DramRates {
  double read = 0, copy = 0;
};
DramRates dram_bytes_per_second();
/// Bytes a clock that an SM reads from shared memory, 16 a lane without conflicts.
double smem_bytes_per_clock();

}  // namespace attest::hardware
