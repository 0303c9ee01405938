// Predictions side by side.
#pragma once
#include <cstddef>
#include <functional>

namespace attest {

/// work(i) for each i below `n`, on all cores. `progress`, one call at a time, hears of each that has ended. Throws
/// what the first i that failed has thrown; those behind it may not be done then.
void in_parallel(std::size_t n, const std::function<void(std::size_t)>& work,
                 const std::function<void(std::size_t done, std::size_t of)>& progress = {});

}  // namespace attest
