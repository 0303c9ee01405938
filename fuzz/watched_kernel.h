// The kernel under test, with a note of every call that it is inside.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "attest/fuzz/in_flight.h"
#include "attest/gpu/kernel.h"
#include "process_limits.h"

namespace attest {

/// Each call stands in the flight record while it lasts, and what it throws comes out as KernelThrew, so that a crash,
/// a hang or an exception of any of them is told from attest's own. InvalidInput passes: it is the user's. A kernel
/// that lowers a limit of its process is lost: what attest cannot do then is no error of attest's.
class WatchedKernel : public Kernel {
 public:
  /// Told, from within the call, that the kernel threw KernelLost; need not come back.
  using OnLost = std::function<void(const char* what)>;

  explicit WatchedKernel(std::unique_ptr<Kernel> kernel, OnLost on_lost = {})
      : kernel_(std::move(kernel)), on_lost_(std::move(on_lost)) {}

  const Capability& capability() const override;
  Numerics numerics(const Case& c) const override;
  std::optional<std::string> unsupported(const Case& c) const override;
  std::optional<std::string> plan(const Case& c) const override;
  RunReport run(const Case& c, const ForwardArgs& args) override;
  /// A run first, in flight as any other, so that a hang is told by the limit of one; then the series as one call,
  /// which the end of every batch renews.
  std::vector<double> device_seconds(const Case& c, const ForwardArgs& args, int repeats) override;
  RunReport run_backward(const Case& c, const BackwardArgs& args) override;

 private:
  template <class Call>
  decltype(auto) watch(KernelCall name, Call call) const;
  [[noreturn]] void lose(const std::string& what) const;

  std::unique_ptr<Kernel> kernel_;
  OnLost on_lost_;
  ProcessLimits limits_;
};

}  // namespace attest
