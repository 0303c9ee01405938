// The sm_80 kernels' copies, run alone: on the device, and a thread after the other on the host (on_host/).
#pragma once
#include <string>
#include <vector>

#include "attest/plan/kernel_plan.h"

namespace attest::test {

/// Why a CTA of `plan` cannot run; empty where it can.
std::string unavailable(const KernelPlan& plan);

/// Copies of 16 bytes that are called off, of whole rows, or of rows up to a limit; or of any granule.
enum class CopyWay : std::uint8_t { none, whole, ragged, general };

/// Shared memory after a CTA of `plan` has copied a tile of `x` from `from`, whose rows are `row_bytes` apart, into
/// `slot`; 0xee where nothing was written.
std::vector<std::uint8_t> run_tile_copy(const KernelPlan& plan, CopyWay way, Operand x, int slot, int row0, int limit,
                                        const std::vector<std::uint8_t>& from, std::int64_t row_bytes);

/// Global memory after all warps have stored their rows of O from shared memory that holds `shared`; 0xee elsewhere.
std::vector<std::uint8_t> run_tile_store(const KernelPlan& plan, int row0, int limit,
                                         const std::vector<std::uint8_t>& shared, std::size_t bytes,
                                         std::int64_t row_bytes);

}  // namespace attest::test
