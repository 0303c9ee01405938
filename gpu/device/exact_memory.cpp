#include "exact_memory.h"

#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "attest/gpu/cuda_error.h"

namespace attest {

bool wants_exact_memory() {
  const char* const asked = std::getenv("ATTEST_DEVICE_MEMORY");
  return asked != nullptr && std::string_view(asked) == "exact";
}

ExactMemory::ExactMemory(std::span<const MemoryRange> ranges, std::size_t workspace_bytes, cudaStream_t stream)
    : ranges_(ranges), stream_(stream), workspace_(allocate(workspace_bytes)) {}

ExactMemory::Memory ExactMemory::allocate(std::size_t bytes) {
  void* memory = nullptr;
  if (bytes > 0) cuda_check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return Memory(static_cast<std::byte*>(memory));
}

void* ExactMemory::on_device(const void* host) {
  if (host == nullptr) return nullptr;
  constexpr std::size_t alignment = 256;
  const auto address = reinterpret_cast<std::uintptr_t>(host);
  for (const MemoryRange& range : ranges_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(range.begin), margin = address - begin;
    if (address < begin || margin > static_cast<std::uintptr_t>(range.bytes)) continue;
    const std::size_t bytes = static_cast<std::size_t>(range.bytes) - 2 * margin, offset = address % alignment;
    std::byte* const first = static_cast<std::byte*>(range.begin) + margin;
    Memory memory = allocate(offset + bytes);
    std::byte* const device = memory.get() + offset;
    if (bytes > 0)
      cuda_check(cudaMemcpyAsync(device, first, bytes, cudaMemcpyHostToDevice, stream_),
                 "cudaMemcpyAsync to the device");
    pieces_.push_back({first, device, bytes, std::move(memory)});
    return device;
  }
  throw std::logic_error("ExactMemory: a pointer of the arguments lies in none of their memory ranges");
}

void ExactMemory::download() {
  for (const Piece& piece : pieces_)
    if (piece.bytes > 0)
      cuda_check(cudaMemcpyAsync(piece.host, piece.device, piece.bytes, cudaMemcpyDeviceToHost, stream_),
                 "cudaMemcpyAsync from the device");
  cuda_check(cudaStreamSynchronize(stream_), "the kernel");
}

}  // namespace attest
