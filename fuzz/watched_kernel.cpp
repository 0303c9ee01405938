#include "watched_kernel.h"

#include "attest/fuzz/in_flight.h"
#include "attest/gpu/forward_buffers.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

template <class Call>
decltype(auto) watch(KernelCall name, const WatchedKernel::OnLost& on_lost, Call call) {
  const InFlight in_flight(name);
  try {
    return call();
  } catch (const InvalidInput&) {
    throw;
  } catch (const KernelLost& error) {
    if (on_lost) on_lost(error.what());
    throw KernelThrew(error.what());
  } catch (const std::exception& error) {
    throw KernelThrew(error.what());
  } catch (...) {
    throw KernelThrew("an exception that is no std::exception");
  }
}

}  // namespace

const Capability& WatchedKernel::capability() const {
  return watch(KernelCall::capability, on_lost_, [&]() -> const Capability& { return kernel_->capability(); });
}

Numerics WatchedKernel::numerics(const Case& c) const {
  return watch(KernelCall::numerics, on_lost_, [&] { return kernel_->numerics(c); });
}

std::optional<std::string> WatchedKernel::unsupported(const Case& c) const {
  return watch(KernelCall::unsupported, on_lost_, [&] { return kernel_->unsupported(c); });
}

std::optional<std::string> WatchedKernel::plan(const Case& c) const {
  return watch(KernelCall::plan, on_lost_, [&] { return kernel_->plan(c); });
}

RunReport WatchedKernel::run(const Case& c, const ForwardArgs& args) {
  return watch(KernelCall::run, on_lost_, [&] { return kernel_->run(c, args); });
}

std::vector<double> WatchedKernel::device_seconds(const Case& c, const ForwardArgs& args, int repeats) {
  run(c, args);
  return watch(KernelCall::device_seconds, on_lost_, [&] { return kernel_->device_seconds(c, args, repeats); });
}

RunReport WatchedKernel::run_backward(const Case& c, const BackwardArgs& args) {
  return watch(KernelCall::run_backward, on_lost_, [&] { return kernel_->run_backward(c, args); });
}

}  // namespace attest
