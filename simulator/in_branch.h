// What a turn of a loop does that goes through a branch.
#pragma once
#include <algorithm>
#include <vector>

namespace attest {

/// Its uses in order: those in the branch stand before others `at` the same time, where the turn goes on behind it.
template <class Use, class At>
std::vector<Use> in_branch(std::vector<Use> branch, const std::vector<Use>& turn, At at) {
  branch.insert(branch.end(), turn.begin(), turn.end());
  std::ranges::stable_sort(branch, {}, at);
  return branch;
}

}  // namespace attest
