#include <utility>

#include "attest/gpu/device_kernel.h"
#include "attest/gpu/table_kernel.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

/// The device's memory as it is: what the arguments point into lies there already.
class PlaceAsItIs : public RunPlace {
 public:
  explicit PlaceAsItIs(std::int64_t memory_bytes) : memory_bytes_(memory_bytes) {}
  cudaStream_t stream = nullptr;

  std::int64_t most_workspace_bytes() const override { return memory_bytes_; }
  RunReport run(std::span<const MemoryRange> /*memory*/, std::int64_t workspace_bytes,
                const std::function<void(const PlaceOfRun&)>& call) override {
    workspace_.reserve(static_cast<std::size_t>(workspace_bytes));
    call({[](const void* at) { return const_cast<void*>(at); }, workspace_bytes > 0 ? workspace_.data() : nullptr,
          stream});
    return {};
  }

 private:
  std::int64_t memory_bytes_;
  DeviceMemory workspace_;
};

class TableForward : public DeviceForward {
 public:
  TableForward(const attest_kernel_api* api, const std::string& options) {
    auto place = std::make_unique<PlaceAsItIs>(open_device().memory_bytes);
    place_ = place.get();
    kernel_ = make_table_kernel(api, options, std::move(place));
  }
  const Capability& capability() const override { return kernel_->capability(); }
  Numerics numerics(const Case& c) const override { return kernel_->numerics(c); }
  std::optional<std::string> unsupported(const Case& c, const DeviceLimits&) const override {
    return kernel_->unsupported(c);
  }
  std::string plan(const Case& c) const override { return kernel_->plan(c).value_or(""); }
  void launch(const Case& c, const ForwardArgs& args, void* /*workspace*/, cudaStream_t stream) override {
    place_->stream = stream;
    kernel_->run(c, args);
  }

 private:
  PlaceAsItIs* place_ = nullptr;
  std::unique_ptr<Kernel> kernel_;  // and the place
};

}  // namespace

std::unique_ptr<DeviceForward> make_table_forward(const attest_kernel_api* api, const std::string& options) {
  const Capability declared = read_capability(read_record(read_api(api)));
  if (declared.device != "cuda")
    throw InvalidInput("kernel", "'" + declared.name + "'", "runs on the host, by its record, and on no GPU");
  return std::make_unique<TableForward>(api, options);
}

}  // namespace attest
