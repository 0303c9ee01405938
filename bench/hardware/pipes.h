// Rates and latencies of an SM's pipes, and what a copy takes: each measured by one CTA alone or by one on each SM.
#pragma once

#include <ostream>

namespace attest::hardware {

/// Rows: kind, warps a scheduler, cycles a warp instruction of a scheduler, chains of it that do not wait for each
/// other (1: latency).
void measure_pipes(std::ostream& rows);
/// Rows: kind, whose wgmma runs beside a warpgroup's instructions, cycles a warp instruction of a scheduler, and how
/// long the products took from 500 cycles before the instructions (they must outlast these).
void measure_beside_products(std::ostream& rows);
/// Rows: columns of the product, A's place, warpgroups, products in a row, cycles from the first's issue to the end.
void measure_wgmma(std::ostream& rows);
/// Rows: how, bytes of a tile, stages, SMs, source, cycles a tile and their standard deviation over tiles and SMs.
void measure_copies(std::ostream& rows);
/// Launches kernels that do nothing, or wait, for a profiler to time. Rows: threads, shared memory, CTAs, cluster,
/// cycles that each CTA waits.
void launch_nothing(std::ostream& rows);

}  // namespace attest::hardware
