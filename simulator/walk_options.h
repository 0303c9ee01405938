// What a walk over key tiles may be asked for.
#pragma once
#include "attest/simulator/tile_walk.h"

namespace attest {

/// Throws InvalidInput naming `paces`, `frame` or `spill_uses` where they are not what TileWalkOptions says.
void check_walk_options(const TileWalkOptions& options, const KernelPlan& plan, const DeviceSpec& device);

}  // namespace attest
