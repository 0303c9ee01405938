// What launches combine() and predicts its time needs to know of it.
#pragma once

namespace attest {

/// Rows of a CTA, a warp each, and splits whose loads go together: how often combine() unrolls its loop over them.
inline constexpr int combine_rows = 4, combine_splits_a_turn = 4;

}  // namespace attest
