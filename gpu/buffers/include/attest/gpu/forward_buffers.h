// Runs a forward kernel in poisoned memory: everything outside the logical domain of its inputs is NaN, its outputs
// start as a pattern, and what it wrote where is read back.
#pragma once
#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "attest/gpu/kernel.h"
#include "attest/gpu/tensor_memory.h"
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

/// A batch of calls that are timed together is not longer than this and a call more; gpu/python/attest.py has it too.
inline constexpr double longest_batch_seconds = 1;

/// What a call takes, measured some times.
struct CallTimes {
  std::vector<double> seconds;
  bool on_device =
      false;  // by the device's own clock; else CPU seconds of this process, which others' load leaves alone
};

/// The tensors of a forward run, each in memory of its own. Keeps its allocations: one object a thread, many runs.
/// Not thread safe.
class ForwardBuffers {
 public:
  /// Lays `inputs`, of c's extents and representable in its dtype, out as c.layout says, runs the kernel, and gathers
  /// what it left. O is decoded from its dtype; LSE is converted from the kernel's base to base e. Rows past a batch
  /// entry's length are 0 in both.
  ///   unwritten_*    elements that hold their pattern after a run; where there are any, the kernel runs a second time
  ///                  over another pattern and an element counts only if it kept both
  ///   out_of_bounds  bytes that changed anywhere outside O's and LSE's elements, every byte of the inputs included
  /// Throws KernelThrew.
  ForwardRun run(Kernel& kernel, const Case& c, const Inputs& inputs);

  /// run(), and then the kernel's backward on the O and LSE that its forward left: inputs now, with NaN around them.
  /// The gradients start as patterns and are judged like O; every element of dsink and dbias counts as one to be
  /// written. For kernels that offer gradients, on cases with inputs.dout.
  ForwardRun run_backward(Kernel& kernel, const Case& c, const Inputs& inputs);

  /// Times the forward on these inputs, which no bytes are judged of. Throws KernelThrew.
  CallTimes time(Kernel& kernel, const Case& c, const Inputs& inputs, int repeats);

 private:
  ForwardArgs lay_out(const Case& c, const Inputs& inputs);
  void tell_memory(ForwardArgs& args);
  void lay_out_bias(const Case& c, const Tensor& bias, ForwardArgs& args);
  BackwardArgs lay_out_backward(const Case& c, const Inputs& inputs, const Tensor& o);
  std::int64_t take_out_of_bounds_of_backward();
  void fill_outputs(bool flipped);
  void restore_inputs();
  std::int64_t inputs_changed() const;
  std::int64_t take_out_of_bounds();

  TensorMemory q_, k_, v_, o_, lse_, bias_;
  bool has_bias_ = false;
  ForwardArgs args_;       // of the last run
  Tensor lse_as_written_;  // by it, in the kernel's base
  TensorMemory dout_;
  std::array<TensorMemory, 5> gradients_;  // dq, dk, dv, dsink, dbias
  std::vector<std::size_t> asked_;         // of these, the ones that the case has
  enum List {
    cu_seqlens_q,
    cu_seqlens_k,
    seqused_k,
    page_table,
    alibi_slopes,
    sink,
    q_descale,
    k_descale,
    v_descale,
    document_ends,
    num_lists
  };
  std::array<ListMemory, num_lists> lists_;
  std::vector<MemoryRange> memory_;  // all of the above that the kernel is handed
};

}  // namespace attest
