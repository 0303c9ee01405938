// What came of each case of a campaign, in order, as a line of text that reports and the history keep.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "attest/reference/compare.h"

namespace attest {

/// Runs of equal statuses, "512p3u1v": p passed, u unsupported, v wrong values, s wrong shape, w unwritten, o out of
/// bounds, z hazard, c crashed, h hung.
std::string outcomes_text(const std::vector<Status>& outcomes);

/// Reads it back. Throws InvalidInput naming `field` for a letter or a count that is none, and beyond 10^9 cases.
std::vector<Status> outcomes_from_text(std::string_view field, std::string_view text);

}  // namespace attest
