// A whole backward on the CPU: every CTA of its three grids, from the recorded programs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "attest/plan/args.h"
#include "attest/problem/case.h"
#include "attest/simulator/backward_behaviour.h"

namespace attest {

/// Computes the gradients of `c` from O and LSE; lengths come from `args`, as on a device. Single-threaded; allocates
/// one CTA's tiles and the workspace. Unless the plan adds in order, CTAs add to dQ, dbias and dsink in an order drawn
/// from the case's seed, or the other way round if `reversed`, as on a device whose CTAs start in any order. Each
/// distinct program goes to `inspect` once, before it runs. dsink and dbias have a margin of a row before their first
/// element (a wrong plan may add to it). Returns the accesses to what does not exist, by name.
std::vector<std::string> backward_on_cpu(const BackwardBehaviour& behaviour, const Case& c, const BackwardArgs& args,
                                         bool reversed, const std::function<void(const BackwardProgram&)>& inspect);

}  // namespace attest
