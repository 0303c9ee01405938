// How far CTAs drift apart that walk key tiles of attention side by side: when each asks for each tile.
#pragma once

#include <ostream>

namespace attest::hardware {

/// Every SM runs one persistent CTA with two warpgroups of wgmma and a warp that copies K and V tiles ahead
/// (`wgmma`, 128 x 128, headdim 128), or two CTAs of four warps or one of eight with mma.sync and cp.async (`mma_sync`,
/// 128 x 64). All start at one time of the global timer. Rows: matrix instruction; CTAs that read one head (0: no
/// copies); source; repeat; CTA; its SM, GPC and that SM's clock in MHz; key tile; when its K was asked for and when
/// its step ended, in cycles of one clock for all SMs from the common start.
void measure_drift(std::ostream& rows);

}  // namespace attest::hardware
