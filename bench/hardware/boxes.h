// Heads of a tensor [rows, heads, columns] read by TMA boxes of 64 columns, as kernels for 64 columns and more read
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "attest/hardware/placement.h"

namespace attest::hardware {

/// Both sides read all rows of `heads_read` heads that follow each other, `rounds` times; a head in boxes of 64
/// columns and 32 rows, of which the last may end beyond the head. `promotion` is CUtensorMapL2promotion's value.
struct BoxWalk {
  int heads = 1, columns = 64, rows = 0;  ///< of the tensor; columns are of 2 bytes
  int first_head = 0, heads_read = 1;
  int promotion = 0;
  int rounds = 1;
};

/// Runs it as the kernel `probe_boxes`, one CTA an SM.
void run_boxes(const BoxWalk& walk, std::uint8_t* buffer, const std::vector<SmPlace>& sms);

/// Which 64-byte halves of lines of the first `bytes` are in L2, where `flushed_bytes` from `flushed` on have been read
/// before the walk, by how long a load of each takes.
std::vector<int> halves_after_boxes(const BoxWalk& walk, std::uint8_t* buffer, std::int64_t bytes,
                                    const std::uint8_t* flushed, std::int64_t flushed_bytes,
                                    const std::vector<SmPlace>& sms);

}  // namespace attest::hardware
