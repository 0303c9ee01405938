// Requests of several SMs for the same lines, a known number of cycles apart: how many of them reach L2.
#pragma once

#include <cstdint>
#include <vector>

namespace attest::hardware {

struct MergeRun {
  std::vector<int> sms;  ///< the SMs that read, by id
  int skew_cycles = 0;
  bool random_skew = false;  ///< each SM's each burst is late by a random 0 ... skew_cycles; otherwise SM i by i * skew
  bool lines_in_l2 = true;   ///< every SM has read the lines before, in turn; otherwise they come from DRAM
  bool bulk = false;         ///< one cp.async.bulk a burst, instead of cp.async
  int copy_bytes = 16;       ///< of a lane's cp.async; below 16 they go through L1
  /// What is read are rows of so many bytes, so far apart, the first of which begins so far behind a line's begin.
  int row_bytes = 4096, row_stride = 4096, offset = 0;
};

inline constexpr int kBurstBytes = 4096;                   ///< that an SM reads at a time
inline constexpr std::int64_t kLineSetBytes = 512 * 1024;  ///< that each SM walks
inline constexpr int kPasses = 4;                          ///< timed walks where the lines are in L2; else one

/// Bytes that each SM reads before the timed passes, unmerged, and in them.
std::int64_t warm_bytes_an_sm(const MergeRun& run);
std::int64_t timed_bytes_an_sm(const MergeRun& run);

/// Runs it as the kernel `probe_merge`. Returns how far apart the SMs' clocks had drifted at the end, in cycles, at
/// most.
double run_merge(const MergeRun& run, std::uint8_t* buffer);

}  // namespace attest::hardware
