// How one (query, key) pair of a measured mask stands to the truth.
#pragma once
#include <cstdint>
#include <limits>

#include "attest/fuzz/mask_recovery.h"

namespace attest {

enum class PairState : std::uint8_t { unseen, seen, missing, extra, doubled, reweighted, unknown };
inline constexpr int num_pair_states = 7;

constexpr bool is_wrong(PairState state) { return state >= PairState::missing; }

/// Of key j of row `row` of the mask; `truth`: whether the row should see it.
PairState pair_state(const RecoveredMask& mask, std::int64_t row, std::int64_t j, bool truth);

inline constexpr std::int64_t num_checks_unknown = std::numeric_limits<std::int64_t>::max();

}  // namespace attest
