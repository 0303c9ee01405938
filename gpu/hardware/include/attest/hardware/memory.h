// Latency and bandwidth of shared memory, L2 and DRAM. All throw std::runtime_error with CUDA's words where a call of
// it fails: 2 GiB must be free for those of DRAM.
#pragma once

#include <cstdint>

namespace attest::hardware {

/// Cycles from a load of 4 bytes to the use of what it brought, one thread, each load waiting for the one before.
double smem_latency_cycles();
/// Likewise of loads past L1 by a thread of each SM, the mean over SMs, of lines of its own in random order: together
/// 2 to 4 MiB (at most a quarter of L2) that this SM has read before, and 256 KiB each that L2 no longer has.
double l2_latency_cycles();
double dram_latency_cycles();

/// Bytes a second that all SMs together copy to shared memory (cp.async) of 8 MiB (at most a quarter of L2) again and
/// again, and that they read of 2 GiB once, 16 bytes a lane past L1.
double l2_bytes_per_second();
double dram_read_bytes_per_second();
/// Likewise that they write, again and again.
double l2_write_bytes_per_second();
/// Bytes a clock that an SM reads from shared memory, 16 a lane without conflicts.
double smem_bytes_per_clock();

}  // namespace attest::hardware
