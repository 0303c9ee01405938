#include "attest/counters/device_call.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "attest/gpu/case_lists.h"
#include "attest/gpu/cuda_error.h"
#include "attest/gpu/placement.h"
#include "attest/reference/inputs.h"
#include "device_fill.h"

namespace attest {

/// Pieces of a block, one after the other at multiples of 2 MiB; without one they are counted alone.
class Pieces {
 public:
  explicit Pieces(std::byte* block) : block_(block) {}
  /// Null where there is no block.
  std::byte* next(std::size_t bytes) {
    constexpr std::size_t unit = std::size_t{2} << 20;
    const std::size_t at = used_;
    used_ += (bytes + unit - 1) / unit * unit;
    return block_ == nullptr ? nullptr : block_ + at;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* const block_;
  std::size_t used_ = 0;
};

/// Where the call's pointers point, in a block that others own.
struct DeviceCall::Tensors {
  ForwardArgs args;
  void *workspace = nullptr, *other = nullptr;  // `other`: what displaces the call's lines from L2
  std::size_t bytes = 0, other_bytes = 0;       // of all, and of that

  /// In a block of as many bytes as they have without one.
  Tensors(const DeviceForward& forward, const Case& c, const DeviceLimits& limits, std::byte* block,
          cudaStream_t stream) {
    const Problem& p = c.problem;
    Pieces pieces(block);
    std::uint64_t seed = c.seed << 8;
    const auto place = [&](const Placement& placement, Dtype dtype, bool filled) -> TensorRef {
      const std::int64_t size = bytes_of(dtype), elements = placement.span + c.layout.base_offset;
      std::byte* const at = pieces.next(static_cast<std::size_t>(elements * size));
      if (at == nullptr) return {};
      if (filled) fill_normal(at, elements, dtype, ++seed, stream);
      return {at + c.layout.base_offset * size, placement.batch_stride, placement.row_stride, placement.head_stride};
    };
    args.q = place(place_queries(c, p.headdim), p.dtype, true);
    args.k = place(place_keys(c, p.headdim), p.dtype, true);
    args.v = place(place_keys(c, p.headdim_v), p.dtype, true);
    args.o = place(place_queries(c, p.headdim_v), output_dtype(p.dtype), false);
    args.lse = reinterpret_cast<float*>(pieces.next(static_cast<std::size_t>(place_lse(c).span) * sizeof(float)));
    const std::size_t workspace_bytes = forward.workspace_bytes(c, limits);
    workspace = workspace_bytes == 0 ? nullptr : pieces.next(workspace_bytes);
    const auto upload = [&]<class T>(const T*& to, const auto& values) {
      if (values.empty()) return;
      const std::vector<T> narrow(values.begin(), values.end());
      std::byte* const at = pieces.next(narrow.size() * sizeof(T));
      to = reinterpret_cast<const T*>(at);
      if (at != nullptr)
        cuda_check(cudaMemcpy(at, narrow.data(), narrow.size() * sizeof(T), cudaMemcpyHostToDevice),
                   "cudaMemcpy to the device");
    };
    const CaseLists lists = case_lists(c);
    upload(args.cu_seqlens_q, lists.cu_seqlens_q);
    upload(args.cu_seqlens_k, lists.cu_seqlens_k);
    upload(args.seqused_k, lists.seqused_k);
    upload(args.page_table, lists.page_table);
    args.pages_per_sequence = lists.pages_per_sequence;
    args.page_size = c.layout.page_size;
    upload(args.document_ends, lists.document_ends);
    args.num_documents = std::ssize(p.documents);
    upload(args.alibi_slopes, make_alibi_slopes(p).values);
    if (p.sink) {
      std::byte* const at = pieces.next(static_cast<std::size_t>(p.nheads) * sizeof(float));
      args.sink = reinterpret_cast<const float*>(at);
      if (at != nullptr) fill_normal(at, p.nheads, Dtype::fp32, ++seed, stream);
    }
    other_bytes = 2 * static_cast<std::size_t>(limits.l2_bytes);
    other = pieces.next(other_bytes);
    if (other != nullptr) cuda_check(cudaMemsetAsync(other, 0, other_bytes, stream), "cudaMemsetAsync");
    bytes = pieces.used();
  }
};

std::optional<std::string> DeviceCall::unsupported(const DeviceForward& forward, const Case& c) {
  if (c.backward) return "backward: a forward's counters are read";
  if (is_fp8(c.problem.dtype)) return fmt::format("dtype: {} inputs are not laid out", to_string(c.problem.dtype));
  if (c.problem.bias != Bias::none) return "bias: none is laid out";
  const DeviceLimits limits = open_device();
  if (auto why = forward.unsupported(c, limits)) return why;
  const std::size_t needed = bytes(forward, c);
  if (needed > static_cast<std::size_t>(limits.memory_bytes))
    return fmt::format("memory: {} bytes are needed, the GPU has {}", needed, limits.memory_bytes);
  return std::nullopt;
}

std::size_t DeviceCall::bytes(const DeviceForward& forward, const Case& c) {
  return Tensors(forward, c, open_device(), nullptr, nullptr).bytes;
}

DeviceCall::DeviceCall(std::unique_ptr<DeviceForward> forward, const Case& c, DeviceMemory& memory)
    : forward_(std::move(forward)), case_(c) {
  memory.reserve(bytes(*forward_, c));
  tensors_ = std::make_unique<Tensors>(*forward_, c, open_device(), memory.data(), stream_.get());
  wait();
}

DeviceCall::~DeviceCall() { cudaStreamSynchronize(stream_.get()); }  // the next call has its memory

void DeviceCall::launch() {
  forward_->launch(case_, tensors_->args, tensors_->workspace, stream_.get());
  cuda_check_launch("a launch whose error its author did not look at");
}

void DeviceCall::wait() { cuda_check(cudaStreamSynchronize(stream_.get()), "the kernel"); }

void DeviceCall::empty_l2() {
  read_through(tensors_->other, tensors_->other_bytes / 16 * 16, stream_.get());
  wait();
}

void DeviceCall::mark() { launch_mark(stream_.get()); }

}  // namespace attest
