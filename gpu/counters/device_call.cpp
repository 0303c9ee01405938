#include "attest/counters/device_call.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "attest/gpu/case_lists.h"
#include "attest/gpu/cuda_error.h"
#include "attest/gpu/placement.h"
#include "attest/reference/inputs.h"
#include "device_fill.h"

namespace attest {

/// Everything that the call's pointers point to.
struct DeviceCall::Tensors {
  DeviceMemory q, k, v, o, lse, workspace, other;  // `other`: what displaces the call's lines from L2
  std::vector<std::unique_ptr<DeviceMemory>> lists;
  ForwardArgs args;

  static TensorRef place(DeviceMemory& memory, const Placement& placement, const Case& c, Dtype dtype) {
    const auto elements = static_cast<std::size_t>(placement.span + c.layout.base_offset);
    const auto bytes = static_cast<std::size_t>(bytes_of(dtype));
    memory.reserve(elements * bytes);
    return {memory.data() + static_cast<std::size_t>(c.layout.base_offset) * bytes, placement.batch_stride,
            placement.row_stride, placement.head_stride};
  }
  /// As T; null where there are none.
  template <class T, class Value>
  const T* upload(const std::vector<Value>& values) {
    if (values.empty()) return nullptr;
    const std::vector<T> narrow(values.begin(), values.end());
    DeviceMemory& memory = *lists.emplace_back(std::make_unique<DeviceMemory>());
    memory.reserve(narrow.size() * sizeof(T));
    cuda_check(cudaMemcpy(memory.data(), narrow.data(), narrow.size() * sizeof(T), cudaMemcpyHostToDevice),
               "cudaMemcpy to the device");
    return reinterpret_cast<const T*>(memory.data());
  }
  const float* normal_floats(bool wanted, std::int64_t count, std::uint64_t seed, cudaStream_t stream) {
    if (!wanted) return nullptr;
    DeviceMemory& memory = *lists.emplace_back(std::make_unique<DeviceMemory>());
    memory.reserve(static_cast<std::size_t>(count) * sizeof(float));
    fill_normal(memory.data(), count, Dtype::fp32, seed, stream);
    return reinterpret_cast<const float*>(memory.data());
  }
};

std::optional<std::string> DeviceCall::unsupported(const DeviceForward& forward, const Case& c) {
  if (c.backward) return "backward: a forward's counters are read";
  if (is_fp8(c.problem.dtype)) return fmt::format("dtype: {} inputs are not laid out", to_string(c.problem.dtype));
  if (c.problem.bias != Bias::none) return "bias: none is laid out";
  return forward.unsupported(c, open_device());
}

DeviceCall::DeviceCall(std::unique_ptr<DeviceForward> forward, const Case& c)
    : forward_(std::move(forward)), case_(c), limits_(open_device()), tensors_(std::make_unique<Tensors>()) {
  const Problem& p = c.problem;
  Tensors& t = *tensors_;
  ForwardArgs& args = t.args;
  cudaStream_t stream = stream_.get();
  args.q = Tensors::place(t.q, place_queries(c, p.headdim), c, p.dtype);
  args.k = Tensors::place(t.k, place_keys(c, p.headdim), c, p.dtype);
  args.v = Tensors::place(t.v, place_keys(c, p.headdim_v), c, p.dtype);
  args.o = Tensors::place(t.o, place_queries(c, p.headdim_v), c, output_dtype(p.dtype));
  t.lse.reserve(static_cast<std::size_t>(place_lse(c).span) * sizeof(float));
  args.lse = reinterpret_cast<float*>(t.lse.data());
  std::uint64_t seed = c.seed << 8;
  for (DeviceMemory* input : {&t.q, &t.k, &t.v})
    fill_normal(input->data(), static_cast<std::int64_t>(input->capacity()) / bytes_of(p.dtype), p.dtype, ++seed,
                stream);
  const CaseLists lists = case_lists(c);
  args.cu_seqlens_q = t.upload<std::int32_t>(lists.cu_seqlens_q);
  args.cu_seqlens_k = t.upload<std::int32_t>(lists.cu_seqlens_k);
  args.seqused_k = t.upload<std::int32_t>(lists.seqused_k);
  args.page_table = t.upload<std::int32_t>(lists.page_table);
  args.pages_per_sequence = lists.pages_per_sequence;
  args.page_size = c.layout.page_size;
  args.document_ends = t.upload<std::int32_t>(lists.document_ends);
  args.num_documents = std::ssize(p.documents);
  args.alibi_slopes = t.upload<float>(make_alibi_slopes(p).values);
  args.sink = t.normal_floats(p.sink, p.nheads, ++seed, stream);
  t.workspace.reserve(forward_->workspace_bytes(c, limits_));
  t.other.reserve(2 * static_cast<std::size_t>(limits_.l2_bytes));
  cuda_check(cudaMemsetAsync(t.other.data(), 0, t.other.capacity(), stream), "cudaMemsetAsync");
  wait();
}

DeviceCall::~DeviceCall() = default;

void DeviceCall::launch() {
  void* const workspace = tensors_->workspace.capacity() > 0 ? tensors_->workspace.data() : nullptr;
  forward_->launch(case_, tensors_->args, workspace, stream_.get());
  cuda_check_launch("a launch whose error its author did not look at");
}

void DeviceCall::wait() { cuda_check(cudaStreamSynchronize(stream_.get()), "the kernel"); }

void DeviceCall::empty_l2() {
  read_through(tensors_->other.data(), tensors_->other.capacity() / 16 * 16, stream_.get());
  wait();
}

void DeviceCall::mark() { launch_mark(stream_.get()); }

}  // namespace attest
