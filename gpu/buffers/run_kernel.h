// A call of the kernel under test, and what two calls have in common.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#include <iterator>
#include <string>
#include <vector>

#include "attest/gpu/forward_buffers.h"
#include "attest/problem/error.h"

namespace attest {

/// How many numbers are in both; each ascends.
inline std::int64_t count_both(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return static_cast<std::int64_t>(both.size());
}

/// Adds the hazards that are not there yet.
inline void append(RunReport& to, const RunReport& from) {
  for (const std::string& hazard : from.hazards)
    if (std::find(to.hazards.begin(), to.hazards.end(), hazard) == to.hazards.end()) to.hazards.push_back(hazard);
}

/// What call() gives; anything it throws but InvalidInput becomes KernelThrew.
template <class Call>
auto run_kernel(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const InvalidInput&) {  // the user's, such as a plan that makes no kernel
    throw;
  } catch (const std::exception& error) {
    throw KernelThrew(error.what());
  } catch (...) {
    throw KernelThrew("an exception that is no std::exception");
  }
}

}  // namespace attest
