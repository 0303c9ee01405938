// What a walk over key tiles may be asked for.
#pragma once
#include <optional>

#include "attest/simulator/tile_walk.h"

namespace attest {

/// Throws InvalidInput naming `paces`, `frame` or `spill_uses` where they are not what TileWalkOptions says.
void check_walk_options(const TileWalkOptions& options, const KernelPlan& plan, const DeviceSpec& device);

/// What is known of a kernel's frames, or one of the words that its plan spills.
LocalFrame frame_of(const std::optional<LocalFrame>& known, const KernelPlan& plan);

}  // namespace attest
