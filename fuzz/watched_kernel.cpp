#include "watched_kernel.h"

#include "attest/gpu/forward_buffers.h"
#include "attest/problem/error.h"

namespace attest {

void WatchedKernel::lose(const std::string& what) const {
  if (on_lost_) on_lost_(what.c_str());
  throw KernelThrew(what);
}

template <class Call>
decltype(auto) WatchedKernel::watch(KernelCall name, Call call) const {
  const InFlight in_flight(name);
  const auto expect_limits_kept = [&] {
    if (const std::string lowered = limits_.restored(); !lowered.empty())
      lose("it changes the limits of its process, " + lowered);
  };
  try {
    decltype(auto) result = call();
    expect_limits_kept();
    return result;
  } catch (const KernelThrew&) {
    throw;
  } catch (const InvalidInput&) {
    throw;
  } catch (const KernelLost& error) {
    lose(error.what());
  } catch (const std::exception& error) {
    expect_limits_kept();  // or it threw because of them
    throw KernelThrew(error.what());
  } catch (...) {
    throw KernelThrew("an exception that is no std::exception");
  }
}

const Capability& WatchedKernel::capability() const {
  return watch(KernelCall::capability, [&]() -> const Capability& { return kernel_->capability(); });
}

Numerics WatchedKernel::numerics(const Case& c) const {
  return watch(KernelCall::numerics, [&] { return kernel_->numerics(c); });
}

std::optional<std::string> WatchedKernel::unsupported(const Case& c) const {
  return watch(KernelCall::unsupported, [&] { return kernel_->unsupported(c); });
}

std::optional<std::string> WatchedKernel::plan(const Case& c) const {
  return watch(KernelCall::plan, [&] { return kernel_->plan(c); });
}

RunReport WatchedKernel::run(const Case& c, const ForwardArgs& args) {
  return watch(KernelCall::run, [&] { return kernel_->run(c, args); });
}

std::vector<double> WatchedKernel::device_seconds(const Case& c, const ForwardArgs& args, int repeats) {
  run(c, args);
  return watch(KernelCall::device_seconds, [&] { return kernel_->device_seconds(c, args, repeats); });
}

RunReport WatchedKernel::run_backward(const Case& c, const BackwardArgs& args) {
  return watch(KernelCall::run_backward, [&] { return kernel_->run_backward(c, args); });
}

}  // namespace attest
