#include "attest/gpu/device_kernel.h"

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <utility>

#include "attest/gpu/cuda_error.h"
#include "attest/gpu/table_kernel.h"
#include "attest/problem/error.h"
#include "device_arena.h"
#include "event_seconds.h"
#include "exact_memory.h"

namespace attest {
namespace {

class DevicePlace : public RunPlace {
 public:
  DevicePlace() : limits_(open_device()), stream_(std::make_unique<Stream>()) {}

  std::int64_t most_workspace_bytes() const override { return limits_.memory_bytes; }

  RunReport run(std::span<const MemoryRange> memory, std::int64_t workspace_bytes,
                const std::function<void(const PlaceOfRun&)>& call) override {
    const auto workspace = static_cast<std::size_t>(workspace_bytes);
    return or_lost(
        memory, [&] { return exact_ ? run_exactly(memory, workspace, call) : run_in_arena(memory, workspace, call); });
  }

  std::vector<double> device_seconds(std::span<const MemoryRange> memory, std::int64_t workspace_bytes,
                                     const std::function<void(const PlaceOfRun&)>& call, int repeats) override {
    return or_lost(memory, [&] {
      arena_.upload(memory, static_cast<std::size_t>(workspace_bytes), stream_->get());
      return event_seconds(stream_->get(), repeats, [&] {
        launch(
            call, [this](const void* host) { return arena_.on_device(host); }, arena_.workspace());
      });
    });
  }

 private:
  // What `act` gives, where the device still takes work.
  template <class Act>
  auto or_lost(std::span<const MemoryRange> memory, Act act) -> decltype(act()) {
    if (!lost_.empty()) throw KernelLost(lost_);
    if (memory.empty()) throw std::logic_error("DevicePlace: the caller does not say what memory to mirror");
    try {
      return act();
    } catch (const KernelLost& error) {
      lost_ = error.what();
      throw;
    } catch (const std::exception& error) {
      // An error that stays has taken the context with it; one that does not concerned this launch alone.
      if (cudaDeviceSynchronize() == cudaSuccess) throw;
      lost_ = error.what();
      throw KernelLost(lost_);
    }
  }

  using Call = std::function<void(const PlaceOfRun&)>;

  RunReport run_in_arena(std::span<const MemoryRange> memory, std::size_t workspace_bytes, const Call& call) {
    arena_.upload(memory, workspace_bytes, stream_->get());
    launch(
        call, [this](const void* host) { return arena_.on_device(host); }, arena_.workspace());
    arena_.start_download(stream_->get());
    cuda_check(cudaStreamSynchronize(stream_->get()), "the kernel");
    RunReport report;
    if (const std::int64_t bytes = arena_.finish_download(); bytes > 0)
      report.hazards.push_back(fmt::format("{} bytes of device memory changed beyond the tensors' margins", bytes));
    return report;
  }

  RunReport run_exactly(std::span<const MemoryRange> memory, std::size_t workspace_bytes, const Call& call) {
    ExactMemory exact(memory, workspace_bytes, stream_->get());
    launch(
        call, [&exact](const void* host) { return exact.on_device(host); }, exact.workspace());
    exact.download();
    return {};
  }

  void launch(const Call& call, Relocate at, void* workspace) {
    call({std::move(at), workspace, stream_->get()});
    cuda_check_launch("a launch whose error its author did not look at");
  }

  DeviceLimits limits_;
  std::unique_ptr<Stream> stream_;
  DeviceArena arena_;
  const bool exact_ = wants_exact_memory();
  std::string lost_;  // what took the context, once something did
};

// A DeviceForward as its author's side of the table.
class DeviceForwardKernel : public plugin::Kernel {
 public:
  explicit DeviceForwardKernel(std::unique_ptr<DeviceForward> forward)
      : limits_(open_device()), forward_(std::move(forward)) {}

  std::optional<std::string> unsupported(const attest_problem& problem) override {
    return forward_->unsupported(case_of(problem), limits_);
  }
  void numerics(const attest_problem& problem, attest_numerics& numerics) override {
    tell_numerics(forward_->numerics(case_of(problem)), numerics);
  }
  std::int64_t workspace_bytes(const attest_problem& problem, attest_pass /*pass*/) override {
    return static_cast<std::int64_t>(forward_->workspace_bytes(case_of(problem), limits_));
  }
  void forward(const attest_problem& problem, const attest_forward& args) override {
    forward_->launch(case_of(problem), args_of(problem, args), args.workspace, static_cast<cudaStream_t>(args.stream));
  }
  std::string plan(const attest_problem& problem) override { return forward_->plan(case_of(problem)); }

 private:
  DeviceLimits limits_;
  std::unique_ptr<DeviceForward> forward_;
};

}  // namespace

std::unique_ptr<RunPlace> make_device_place() { return std::make_unique<DevicePlace>(); }

plugin::Kernel* make_device_forward_kernel(std::unique_ptr<DeviceForward> forward) {
  try {
    return new DeviceForwardKernel(std::move(forward));
  } catch (const EnvironmentError& error) {
    throw plugin::NoEnvironment(error.what());
  }
}

attest_capability device_capability(const Capability& declared, attest_arithmetic arithmetic) {
  attest_capability capability = to_api(declared, arithmetic);
  capability.device = ATTEST_DEVICE_CUDA;
  return capability;
}

std::unique_ptr<Kernel> make_device_kernel(std::unique_ptr<DeviceForward> forward) {
  auto place = make_device_place();
  const attest_capability capability = device_capability(forward->capability(), ATTEST_ARITHMETIC_FLASH);
  const attest_kernel_api table = plugin::table_of(&capability, nullptr);
  return make_table_kernel(table, make_device_forward_kernel(std::move(forward)), std::move(place));
}

}  // namespace attest
