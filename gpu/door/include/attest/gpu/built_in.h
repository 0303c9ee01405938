// The kernels that are part of attest, through the same door: their classes as tables of kernel_api.h.
#pragma once
#include <memory>

#include "attest/gpu/kernel.h"
#include "attest/gpu/kernel_adapter.h"
#include "attest/problem/error.h"

namespace attest {

/// What a built-in kernel declares, in the table's words: all features and both alignments, which its unsupported()
/// narrows. `arithmetic`: of attest_arithmetic; its numerics() are told field by field all the same. Points into
/// `capability`.
attest_capability to_api(const Capability& capability, attest_arithmetic arithmetic);

/// All fields of `from`, but its name.
void tell_numerics(const Numerics& from, attest_numerics& to);

/// A Kernel of attest's on the host, behind the table. What it throws keeps its meaning.
class BuiltInKernel : public plugin::Kernel {
 public:
  explicit BuiltInKernel(std::unique_ptr<attest::Kernel> kernel) : kernel_(std::move(kernel)) {}
  std::optional<std::string> unsupported(const attest_problem& problem) override;
  void numerics(const attest_problem& problem, attest_numerics& numerics) override;
  void forward(const attest_problem& problem, const attest_forward& args) override;
  void backward(const attest_problem& problem, const attest_backward& args) override;
  std::string plan(const attest_problem& problem) override;

 private:
  std::unique_ptr<attest::Kernel> kernel_;
};

/// A table's create() for the kernel that make() gives.
template <class Make>
std::int32_t create_built_in(void** self, attest_text* message, Make make) {
  return plugin::create(self, message, [&] {
    try {
      return new BuiltInKernel(make());
    } catch (const InvalidInput& error) {
      throw plugin::InvalidOption(error.what());
    }
  });
}

}  // namespace attest
