#include "device_arena.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "attest/gpu/cuda_error.h"

namespace attest {
namespace {

constexpr std::size_t alignment = 256;
// Checked between ranges; wider at the ends, where what overruns by a tile meets no other tensor.
constexpr std::size_t zone_bytes = 16 << 10, end_zone_bytes = 128 << 10;
// Neither checked nor copied: what goes this far astray is still in memory of ours.
constexpr std::size_t slack_bytes = 1 << 20;
constexpr int poison = 0xFF;

std::size_t round_up(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }

std::int64_t count_unpoisoned(const std::byte* begin, const std::byte* end) {
  return std::count_if(begin, end, [](std::byte b) { return b != std::byte{poison}; });
}

}  // namespace

void DeviceArena::upload(std::span<const MemoryRange> ranges, std::size_t workspace_bytes, cudaStream_t stream) {
  ranges_.assign(ranges.begin(), ranges.end());
  offsets_.clear();
  std::size_t at = end_zone_bytes;
  for (const MemoryRange& range : ranges_) {
    const std::size_t off_alignment = reinterpret_cast<std::uintptr_t>(range.begin) % alignment;
    offsets_.push_back(round_up(at) + off_alignment);
    at = offsets_.back() + static_cast<std::size_t>(range.bytes) + zone_bytes;
  }
  bytes_ = round_up(at - zone_bytes + end_zone_bytes);
  workspace_ = bytes_;
  workspace_bytes_ = workspace_bytes;
  last_zone_ = workspace_ + workspace_bytes;
  const std::size_t end = last_zone_ + (workspace_bytes > 0 ? end_zone_bytes : 0);
  staging_.reserve(bytes_ + end_zone_bytes);
  device_.reserve(2 * slack_bytes + round_up(end));

  std::byte* const staged = staging_.data();
  std::size_t done = 0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    std::memset(staged + done, poison, offsets_[i] - done);
    std::memcpy(staged + offsets_[i], ranges_[i].begin, static_cast<std::size_t>(ranges_[i].bytes));
    done = offsets_[i] + static_cast<std::size_t>(ranges_[i].bytes);
  }
  std::memset(staged + done, poison, bytes_ - done);
  std::byte* const base = device_.data() + slack_bytes;
  cuda_check(cudaMemcpyAsync(base, staged, bytes_, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync to the device");
  // The slack behind as well: a case before this one may have left anything there.
  cuda_check(cudaMemsetAsync(device_.data(), poison, slack_bytes, stream), "cudaMemsetAsync");
  cuda_check(cudaMemsetAsync(base + bytes_, poison, end - bytes_ + slack_bytes, stream), "cudaMemsetAsync");
}

void* DeviceArena::on_device(const void* host) const {
  if (host == nullptr) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(host);
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const auto begin = reinterpret_cast<std::uintptr_t>(ranges_[i].begin);
    if (address >= begin && address - begin <= static_cast<std::uintptr_t>(ranges_[i].bytes))
      return device_.data() + slack_bytes + offsets_[i] + (address - begin);
  }
  throw std::logic_error("DeviceArena: a pointer of the arguments lies in none of their memory ranges");
}

void* DeviceArena::workspace() const {
  return workspace_bytes_ > 0 ? device_.data() + slack_bytes + workspace_ : nullptr;
}

void DeviceArena::start_download(cudaStream_t stream) {
  const std::byte* const base = device_.data() + slack_bytes;
  cuda_check(cudaMemcpyAsync(staging_.data(), base, bytes_, cudaMemcpyDeviceToHost, stream),
             "cudaMemcpyAsync from the device");
  if (workspace_bytes_ > 0)
    cuda_check(
        cudaMemcpyAsync(staging_.data() + bytes_, base + last_zone_, end_zone_bytes, cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync from the device");
}

std::int64_t DeviceArena::finish_download() {
  const std::byte* const staged = staging_.data();
  std::int64_t changed = 0;
  std::size_t done = 0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    changed += count_unpoisoned(staged + done, staged + offsets_[i]);
    std::memcpy(ranges_[i].begin, staged + offsets_[i], static_cast<std::size_t>(ranges_[i].bytes));
    done = offsets_[i] + static_cast<std::size_t>(ranges_[i].bytes);
  }
  return changed + count_unpoisoned(staged + done, staged + bytes_ + (workspace_bytes_ > 0 ? end_zone_bytes : 0));
}

}  // namespace attest
