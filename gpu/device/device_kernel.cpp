#include "attest/gpu/device_kernel.h"

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <utility>

#include "attest/gpu/cuda_error.h"
#include "device_arena.h"
#include "exact_memory.h"

namespace attest {
namespace {

template <class Memory, class T>
void take(Memory& memory, T*& pointer) {
  pointer = static_cast<T*>(memory.on_device(pointer));
}

template <class Memory>
ForwardArgs on_device(Memory& memory, ForwardArgs args) {
  for (TensorRef* tensor : {&args.q, &args.k, &args.v, &args.o}) take(memory, tensor->data);
  take(memory, args.lse);
  for (const std::int32_t** list :
       {&args.cu_seqlens_q, &args.cu_seqlens_k, &args.seqused_k, &args.page_table, &args.document_ends})
    take(memory, *list);
  for (const float** list :
       {&args.alibi_slopes, &args.sink, &args.bias, &args.q_descale, &args.k_descale, &args.v_descale})
    take(memory, *list);
  args.memory = nullptr;
  args.num_memory_ranges = 0;
  return args;
}

class DeviceKernel : public Kernel {
 public:
  explicit DeviceKernel(std::unique_ptr<DeviceForward> forward)
      : limits_(open_device()), forward_(std::move(forward)), stream_(std::make_unique<Stream>()) {}

  const Capability& capability() const override { return forward_->capability(); }
  Numerics numerics(const Case& c) const override { return forward_->numerics(c); }
  std::optional<std::string> unsupported(const Case& c) const override { return forward_->unsupported(c, limits_); }

  RunReport run(const Case& c, const ForwardArgs& args) override {
    if (!lost_.empty()) throw KernelLost(lost_);
    if (args.memory == nullptr) throw std::logic_error("DeviceKernel: the caller does not say what memory to mirror");
    const std::span<const MemoryRange> memory(args.memory, static_cast<std::size_t>(args.num_memory_ranges));
    try {
      return exact_ ? run_exactly(c, args, memory) : run_in_arena(c, args, memory);
    } catch (const CudaError& error) {
      // An error that stays has taken the context with it; one that does not concerned this launch alone.
      if (cudaDeviceSynchronize() == cudaSuccess) throw;
      lost_ = error.what();
      throw KernelLost(lost_);
    }
  }

 private:
  RunReport run_in_arena(const Case& c, const ForwardArgs& args, std::span<const MemoryRange> memory) {
    arena_.upload(memory, forward_->workspace_bytes(c, limits_), stream_->get());
    launch(c, on_device(arena_, args), arena_.workspace());
    arena_.start_download(stream_->get());
    cuda_check(cudaStreamSynchronize(stream_->get()), "the kernel");
    RunReport report;
    if (const std::int64_t bytes = arena_.finish_download(); bytes > 0)
      report.hazards.push_back(fmt::format("{} bytes of device memory changed beyond the tensors' margins", bytes));
    return report;
  }

  RunReport run_exactly(const Case& c, const ForwardArgs& args, std::span<const MemoryRange> memory) {
    ExactMemory exact(memory, forward_->workspace_bytes(c, limits_), stream_->get());
    launch(c, on_device(exact, args), exact.workspace());
    exact.download();
    return {};
  }

  void launch(const Case& c, const ForwardArgs& args, void* workspace) {
    forward_->launch(c, args, workspace, stream_->get());
    cuda_check_launch("a launch whose error its author did not look at");
  }

  DeviceLimits limits_;
  std::unique_ptr<DeviceForward> forward_;
  std::unique_ptr<Stream> stream_;
  DeviceArena arena_;
  const bool exact_ = wants_exact_memory();
  std::string lost_;  // what took the context, once something did
};

}  // namespace

std::unique_ptr<Kernel> make_device_kernel(std::unique_ptr<DeviceForward> forward) {
  return std::make_unique<DeviceKernel>(std::move(forward));
}

}  // namespace attest
