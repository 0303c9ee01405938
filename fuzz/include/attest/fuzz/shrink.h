// Makes a failing case as small as it goes while it keeps failing in the same way.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "attest/fuzz/properties.h"

namespace attest {

struct ShrinkLimits {
  int max_runs = 1500;
  double max_seconds = 5;  // the result depends on the machine only where this strikes
};

struct Shrunk {
  Case minimal;
  Verdict verdict;  // of the minimal case
  int runs = 0;
  bool finished = false;  // no simpler case fails; false: a limit struck
};

/// Valid cases that are simpler than c in one respect, the boldest first: features dropped, extents towards 0 and 1 by
/// halves and steps, batch entries and documents dropped one by one, default layout, normal inputs, small seed. Fields
/// that must agree with a changed one give way with it. Finite chains: every respect has a simplest value.
std::vector<Case> simpler_cases(const Case& c);

/// What `property` says of a case; none if the kernel does not take it.
using Attempt = std::function<std::optional<Verdict>(const Property& property, const Case& c)>;

/// Greedy: takes the first simpler case that the kernel supports and that fails `property` with the same status as
/// `failure`, until none does.
Shrunk shrink(const Attempt& attempt, const Property& property, const Case& c, const Verdict& failure,
              const ShrinkLimits& limits = {});
/// The kernel in this process.
Shrunk shrink(Kernel& kernel, ForwardBuffers& buffers, const Property& property, const Case& c, const Verdict& failure,
              const ShrinkLimits& limits = {});

}  // namespace attest
