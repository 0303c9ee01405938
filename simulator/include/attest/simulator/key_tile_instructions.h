// What a warp issues for one key tile, by the kernel's own program: to stand beside its machine code.
#pragma once
#include "attest/plan/kernel_plan.h"

namespace attest {

/// Warp instructions of one warp that computes, for one unmasked key tile. A warp that only copies is left out.
struct KeyTileInstructions {
  double copies = 0;              // cp.async of aligned tensors; 0 where copies are bulk
  double load_matrix = 0;         // ldmatrix of four matrices
  double multiply = 0;            // mma.sync of 16 x 8 results
  double multiply_warpgroup = 0;  // wgmma
  double exponentials = 0;        // of scores, and one a row and lane for the change of its maximum
  double barriers = 0;            // of the CTA
};

/// The difference between programs of whole key tiles that a ring's turn tells apart, over its slots.
KeyTileInstructions key_tile_instructions(const KernelPlan& plan);

}  // namespace attest
