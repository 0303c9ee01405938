// Device kernels that write what a test asks of them.
#pragma once
#include <memory>

#include "attest/gpu/device_kernel.h"

namespace attest {

enum class Plant : std::uint8_t {
  none,              // every element of O gets its own value, as Writer's, and LSE too
  writes_gap,        // and the two bytes after the first row of O
  writes_before_o,   // and the four bytes before LSE
  writes_input,      // and Q's first element
  writes_far,        // and 8 bytes between what is mirrored of O and of the next range
  writes_workspace,  // and the 4 bytes behind its workspace
  reads_workspace,   // O is 1 where its workspace is NaN
  skips_an_element,  // but O's last
  takes_too_much,    // asks for more shared memory than any device has
  crashes,           // writes to address 16
};

class PlantedForward : public DeviceForward {
 public:
  explicit PlantedForward(Plant plant) : plant_(plant) {
    capability_.name = "planted";
    capability_.dtypes = {Dtype::fp16};
  }
  const Capability& capability() const override { return capability_; }
  Numerics numerics(const Case& c) const override { return flash_numerics(c.problem.dtype); }
  std::optional<std::string> unsupported(const Case&, const DeviceLimits&) const override { return std::nullopt; }
  std::size_t workspace_bytes(const Case&, const DeviceLimits&) const override { return workspace_bytes_; }
  void launch(const Case& c, const ForwardArgs& args, void* workspace, cudaStream_t stream) override;

  static constexpr std::size_t workspace_bytes_ = 4 << 10;
  static inline ForwardArgs last{};  // what launch() was handed

 private:
  Plant plant_;
  Capability capability_;
};

}  // namespace attest
