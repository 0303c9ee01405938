// How long each kernel of the unfused path takes, in the fused kernel's terms.
#pragma once
#include "attest/problem/problem.h"
#include "attest/simulator/unfused.h"

namespace attest {

/// Tiles of a product's result over all heads, what their CTAs ask of L2, put into shared memory and multiply. The
/// tiles of `across` CTAs that follow each other lie beside each other, and as many times `down` share keys.
struct ProductGrid {
  double tiles = 0, rows = 0, columns = 0;  // rows: queries
  double across = 0, down = 0;
  double l2_read_bytes = 0, filled_bytes = 0, fmas = 0;
};
ProductGrid scores_grid(const Problem& problem, const DeviceSpec& device, const UnfusedKernels& kernels);
ProductGrid output_grid(const Problem& problem, const DeviceSpec& device, const UnfusedKernels& kernels);

/// Operations of a lane for an element, by the pipe that they go through.
struct LaneOperations {
  double fma = 0, alu = 0, exp = 0, other = 0;
};
/// An element of a product is scaled, packed and stored, 16 bytes a lane; one of S modified before, as step_time has
/// it.
LaneOperations stored_result();
LaneOperations stored_score(const Problem& problem);

/// Fill in cycles, time_us, utilisation and bound of a kernel whose bytes are there, and add what its CTAs ask of L2 to
/// l2_read_bytes.
void time_product(UnfusedKernel& kernel, const ProductGrid& grid, const LaneOperations& of_result,
                  const Problem& problem, const DeviceSpec& device);
void time_softmax(UnfusedKernel& kernel, const Problem& problem, const DeviceSpec& device);

/// The same of gpu/unfused's, in 16 bits; `depth`: what a product sums over, on average.
void time_own_product(UnfusedKernel& kernel, const ProductGrid& grid, double depth, bool scores, int ctas_per_sm,
                      const DeviceSpec& device);
void time_own_softmax(UnfusedKernel& kernel, const Problem& problem, int rows_per_sm, const DeviceSpec& device);

/// Of a kernel whose bytes are there: what follows from its cycles and how many each pipe is busy.
void finish(UnfusedKernel& kernel, BusyCycles busy, double cycles, const DeviceSpec& device);

/// Cycles, utilisation and bound of all three kernels from theirs.
void add_up_times(UnfusedCost& cost);

}  // namespace attest
