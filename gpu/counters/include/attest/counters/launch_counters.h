// What a profiler read of one launch.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace attest {

/// A kernel's launch: the kernel's name as the driver knows it, and counters by the profiler's names.
struct LaunchCounters {
  std::string function;
  std::map<std::string, double> values;
};

}  // namespace attest
