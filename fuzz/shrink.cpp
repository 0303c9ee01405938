#include "attest/fuzz/shrink.h"

#include <chrono>

namespace attest {

Shrunk shrink(Kernel& kernel, ForwardBuffers& buffers, const Property& property, const Case& c, const Verdict& failure,
              const ShrinkLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  Shrunk best{c, failure};
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Case& candidate : simpler_cases(best.minimal)) {
      if (best.runs >= limits.max_runs || elapsed() >= limits.max_seconds) return best;
      if (!property.applies(candidate) || kernel.unsupported(candidate)) continue;
      ++best.runs;
      Trial trial(kernel, buffers, candidate);
      const Verdict verdict = judge(property, trial);
      if (verdict.status != failure.status) continue;
      best.minimal = candidate;
      best.verdict = verdict;
      smaller = true;
      break;
    }
  }
  best.finished = true;
  return best;
}

}  // namespace attest
