// A whole forward on the CPU: every CTA of the grid, from the recorded programs.
#pragma once
#include <functional>

#include "attest/plan/args.h"
#include "attest/problem/problem.h"
#include "attest/simulator/behaviour.h"

namespace attest {

/// Computes O and LSE of `problem`. Single-threaded; allocates one CTA's tiles. The buffers behind `args` have a margin
/// of at least two rows past their last element (a wrong plan may write one row too many). Each query tile's program
/// goes to `inspect` once it has run.
void forward_on_cpu(const Behaviour& behaviour, const Problem& problem, const ForwardArgs& args,
                    const std::function<void(const Program&)>& inspect);

}  // namespace attest
