// What a compiled kernel spills.
#pragma once
#include "attest/simulator/registers.h"

namespace attest {

struct CompiledSpill {
  PlaceCounts stored, loaded;
  PlaceCounts store_instructions, load_instructions;  // that move them, up to four words each
};

}  // namespace attest
