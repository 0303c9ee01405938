// The kernel under test, as the suite sees it: what it says of itself, and one call.
#pragma once
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "attest/plan/args.h"
#include "attest/problem/case.h"
#include "attest/problem/numerics.h"

namespace attest {

/// What a kernel declares. The verdict holds it to this and to nothing else.
struct Capability {
  std::string name;            // the word behind --kernel
  std::string description;     // one line for `attest kernels`
  std::string device = "cpu";  // or "cuda"
  std::vector<Dtype> dtypes;
  std::vector<std::string> features;  // words of what it takes beyond plain attention, for lists; unsupported() decides
  bool offers_lse = true;
  bool offers_gradients = false;
  double lse_base = 2.718281828459045;  // log base of LSE
  double lse_of_empty_row = -std::numeric_limits<double>::infinity();
  bool bitwise_batch = false;   // a batch gives its members bit for bit
  bool bitwise_gqa = false;     // GQA gives MHA with repeated heads bit for bit
  bool bitwise_layout = false;  // the same values in other strides, packed, padded or in pages, give the same bits
  bool bitwise_repeat = true;   // the same call gives the same bits again
  // A NaN or an Inf in V reaches no row that does not see its key, and in the backward one of any input only the pairs
  // that see each other. Where false it may reach every row of its sequence: a masked weight is 0, and 0 NaN is NaN.
  bool isolates_values = false;
};

struct RunReport {
  std::vector<std::string> hazards;  // violated orderings by name, each once, with its count
};

/// A kernel can run nothing more in this process, such as after an illegal address on a GPU; what() says what happened.
/// Held against the kernel as a crash is; a worker ends with it, and another one is started.
class KernelLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const Capability& capability() const = 0;
  /// Where the kernel rounds on this case.
  virtual Numerics numerics(const Case& c) const = 0;
  /// Why the kernel refuses this case; none if it takes it.
  virtual std::optional<std::string> unsupported(const Case& c) const = 0;
  /// The plan that it runs this case with, as a --plan file's JSON; none if it tells none.
  virtual std::optional<std::string> plan(const Case& /*c*/) const { return std::nullopt; }
  /// Computes O and LSE. Reads the logical domain of q, k, v only and writes every element of o and lse.
  virtual RunReport run(const Case& c, const ForwardArgs& args) = 0;
  /// Seconds of one run() on the device alone, without copies and launch: `repeats` measurements, each the mean of as
  /// many launches in a row as its clock needs. None from a kernel that runs on the CPU, whose run() is timed from
  /// outside.
  virtual std::vector<double> device_seconds(const Case& /*c*/, const ForwardArgs& /*args*/, int /*repeats*/) {
    return {};
  }
  /// Computes the gradients, of which it writes every element. Called only where offers_gradients is set.
  virtual RunReport run_backward(const Case& /*c*/, const BackwardArgs& /*args*/) {
    throw std::logic_error("the kernel offers no gradients");
  }
};

}  // namespace attest
