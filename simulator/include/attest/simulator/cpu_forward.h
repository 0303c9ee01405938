// A whole forward on the CPU: every CTA of the grid, from the recorded programs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "attest/plan/args.h"
#include "attest/problem/case.h"
#include "attest/simulator/behaviour.h"

namespace attest {

/// Computes O and LSE of `c`; lengths and pages come from `args`, as on a device. Single-threaded; allocates one CTA's
/// tiles, and with splits their workspace. The buffers behind `args` have a margin of at least two rows past their last
/// element (a wrong plan may write one row too many). Each distinct program goes to `inspect` once, before it runs.
/// Returns the accesses to what does not exist that leave no trace in the results, by name.
std::vector<std::string> forward_on_cpu(const Behaviour& behaviour, const Case& c, const ForwardArgs& args,
                                        const std::function<void(const Program&)>& inspect);

}  // namespace attest
