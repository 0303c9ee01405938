// What CUPTI's activity records say of launches: name, grid, registers.
#pragma once
#include <functional>
#include <vector>

#include "attest/counters/launch_counters.h"

namespace attest {

/// The launches that `work` makes and waits for, in order, with launch__registers_per_thread,
/// launch__shared_mem_per_block (with what the system reserves), launch__grid_size and launch__block_size. Throws
/// EnvironmentError.
std::vector<LaunchCounters> record_launches(const std::function<void()>& work);

}  // namespace attest
