#include "device_arena.h"

#include "attest/gpu/cuda_error.h"

namespace attest {
namespace {

constexpr std::size_t end_zone_bytes = StagedRanges::end_zone_bytes;
// Neither checked nor copied: what goes this far astray is still in memory of ours.
constexpr std::size_t slack_bytes = 1 << 20;
constexpr int poison = StagedRanges::poison;

}  // namespace

void DeviceArena::upload(std::span<const MemoryRange> ranges, std::size_t workspace_bytes, cudaStream_t stream) {
  workspace_ = ranges_.lay_out(ranges);
  workspace_bytes_ = workspace_bytes;
  last_zone_ = workspace_ + workspace_bytes;
  const std::size_t end = last_zone_ + (workspace_bytes > 0 ? end_zone_bytes : 0);
  staging_.reserve(ranges_.bytes() + end_zone_bytes);
  device_.reserve(2 * slack_bytes + StagedRanges::round_up(end));

  ranges_.copy_in(staging_.data());
  std::byte* const base = device_.data() + slack_bytes;
  cuda_check(cudaMemcpyAsync(base, staging_.data(), ranges_.bytes(), cudaMemcpyHostToDevice, stream),
             "cudaMemcpyAsync to the device");
  // The slack behind as well: a case before this one may have left anything there.
  cuda_check(cudaMemsetAsync(device_.data(), poison, slack_bytes, stream), "cudaMemsetAsync");
  cuda_check(cudaMemsetAsync(base + ranges_.bytes(), poison, end - ranges_.bytes() + slack_bytes, stream),
             "cudaMemsetAsync");
}

void* DeviceArena::on_device(const void* host) const {
  return host ? device_.data() + slack_bytes + ranges_.offset_of(host) : nullptr;
}

void* DeviceArena::workspace() const {
  return workspace_bytes_ > 0 ? device_.data() + slack_bytes + workspace_ : nullptr;
}

void DeviceArena::start_download(cudaStream_t stream) {
  const std::byte* const base = device_.data() + slack_bytes;
  cuda_check(cudaMemcpyAsync(staging_.data(), base, ranges_.bytes(), cudaMemcpyDeviceToHost, stream),
             "cudaMemcpyAsync from the device");
  if (workspace_bytes_ > 0)
    cuda_check(cudaMemcpyAsync(staging_.data() + ranges_.bytes(), base + last_zone_, end_zone_bytes,
                               cudaMemcpyDeviceToHost, stream),
               "cudaMemcpyAsync from the device");
}

std::int64_t DeviceArena::finish_download() {
  const std::byte* const behind = staging_.data() + ranges_.bytes();
  return ranges_.copy_out(staging_.data()) +
         StagedRanges::count_unpoisoned(behind, behind + (workspace_bytes_ > 0 ? end_zone_bytes : 0));
}

}  // namespace attest
