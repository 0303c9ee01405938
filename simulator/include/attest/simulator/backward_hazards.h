// Violated orderings on the tiles that a backward keeps in shared memory, found in its program rather than guessed from
// wrong values. As hazards.h, but a tile at a time: each tile is parted by the warp that writes it.
//
// Time is counted in epochs: barriers of the CTA passed. A copy is written from its issue until the wait that covers
// it.
//   read    sees a part that its own warp wrote, once that was waited for; of another warp once that was waited for and
//           a barrier passed. What it finds must be the tile that it is meant to read.
//   write   needs a barrier since another warp's last read of what it writes over, and since any other write was
//           complete. A part lies over the same part of the same kind of tile, and over all of any other kind.
// All warps must pass the same number of barriers.
#pragma once
#include <string>
#include <vector>

#include "attest/simulator/backward_program.h"

namespace attest {

/// Every violated ordering of the program, by name, each once.
std::vector<std::string> find_backward_hazards(const BackwardPlan& plan, const BackwardProgram& program);

}  // namespace attest
