#include "attest/fuzz/shrink.h"

#include <chrono>

namespace attest {

Shrunk shrink(const Attempt& attempt, const Property& property, const Case& c, const Verdict& failure,
              const ShrinkLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  Shrunk best{c, failure};
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Case& candidate : simpler_cases(best.minimal)) {
      if (best.runs >= limits.max_runs || elapsed() >= limits.max_seconds) return best;
      if (!property.applies(candidate)) continue;
      const std::optional<Verdict> verdict = attempt(property, candidate);
      if (!verdict) continue;
      ++best.runs;
      if (verdict->status != failure.status) continue;
      best.minimal = candidate;
      best.verdict = *verdict;
      smaller = true;
      break;
    }
  }
  best.finished = true;
  return best;
}

Shrunk shrink(Kernel& kernel, ForwardBuffers& buffers, const Property& property, const Case& c, const Verdict& failure,
              const ShrinkLimits& limits) {
  const auto attempt = [&](const Property& p, const Case& candidate) -> std::optional<Verdict> {
    if (kernel.unsupported(candidate)) return std::nullopt;
    Trial trial(kernel, buffers, candidate);
    return judge(p, trial);
  };
  return shrink(attempt, property, c, failure, limits);
}

}  // namespace attest
