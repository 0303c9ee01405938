// Runs a forward kernel in poisoned memory: everything outside the logical domain of its inputs is NaN, its outputs
// start as a pattern, and what it wrote where is read back.
#pragma once
#include <cstdint>
#include <stdexcept>

#include "attest/gpu/kernel.h"
#include "attest/gpu/placement.h"
#include "attest/gpu/poisoned.h"
#include "attest/reference/compare.h"
#include "attest/reference/inputs.h"

namespace attest {

/// An exception left the kernel under test; what() is its message.
class KernelThrew : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What one run gave.
struct ForwardRun {
  Outputs outputs;
  RunReport report;
};

/// The five tensors of a forward run, each in memory of its own. Keeps its allocations: one object a thread, many runs.
/// Not thread safe.
class ForwardBuffers {
 public:
  /// Lays `inputs`, of c's extents and representable in its dtype, out as c.layout says, runs the kernel, and gathers
  /// what it left. O is decoded from its dtype; LSE is converted from the kernel's base to base e.
  ///   unwritten_*    elements that hold their pattern after a run; where there are any, the kernel runs a second time
  ///                  over another pattern and an element counts only if it kept both
  ///   out_of_bounds  bytes that changed anywhere outside O's and LSE's elements, every byte of q, k and v included
  /// Throws KernelThrew.
  ForwardRun run(Kernel& kernel, const Case& c, const Inputs& inputs);

 private:
  void reserve(const Case& c);
  void fill_outputs(bool flipped);
  std::int64_t take_out_of_bounds();

  Placement q_place_, k_place_, v_place_, o_place_, lse_place_;
  PoisonedMemory q_, k_, v_, o_, lse_;
  int element_bytes_ = 2;
};

}  // namespace attest
