#include "attest/gpu/unfused.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "attest/plan/unfused.h"
#include "attest/problem/error.h"
#include "call.h"

namespace attest {
namespace {

constexpr std::int64_t alignment = 256;

std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

std::int64_t num_rows(const Problem& p) { return p.batch * p.nheads * p.seqlen_q; }

std::int64_t matrix_bytes(const Problem& p) {
  return round_up(num_rows(p) * unfused_row_stride(p) * bytes_of(p.dtype), alignment);
}

// A window that reaches past both sequences is none, so that no sum overflows.
int window(const Problem& p, std::int64_t keys) {
  return keys < 0 || keys >= p.seqlen_q + p.seqlen_k ? -1 : static_cast<int>(keys);
}

class Unfused : public DeviceForward {
 public:
  Unfused() {
    capability_.name = "unfused";
    capability_.description = "Q K^T, softmax and P V as three CUDA kernels, S and P in global memory";
    capability_.dtypes = {Dtype::fp16, Dtype::bf16, Dtype::fp32};
    capability_.bitwise_batch = true;
    capability_.bitwise_gqa = true;
    capability_.bitwise_layout = true;
  }
  const Capability& capability() const override { return capability_; }

  Numerics numerics(const Case& c) const override {
    constexpr int lanes = 32;
    constexpr int longest_row = 1 << 26;  // no running maximum: a row's own is known before its first exponential
    Numerics n = flash_numerics(c.problem.dtype, longest_row);
    n.name = fmt::format("unfused {}", to_string(c.problem.dtype));
    n.u_S = n.u_P;
    n.chain = lanes;
    n.eps_tanh = 0x1p-22;  // tanhf: 1 ulp
    return n;
  }

  std::optional<std::string> unsupported(const Case& c, const DeviceLimits& device) const override {
    const Problem& p = c.problem;
    const auto& dtypes = capability_.dtypes;
    if (std::find(dtypes.begin(), dtypes.end(), p.dtype) == dtypes.end())
      return fmt::format("dtype: {} is none of fp16, bf16, fp32", to_string(p.dtype));
    if (c.num_splits > 1) return fmt::format("num_splits: {} is above 1; S lies in memory whole", c.num_splits);
    if (!unfused_fits_a_grid(p)) return fmt::format("batch: {} makes more blocks than a grid holds", p.batch);
    const double bytes = unfused_elements(p) * bytes_of(p.dtype);
    const double most = 0.5 * static_cast<double>(device.memory_bytes);
    if (bytes > most)
      return fmt::format("seqlen_k: {} makes S {:.3g} GB, above half of the device's memory, {:.3g} GB", p.seqlen_k,
                         bytes * 1e-9, most * 1e-9);
    return std::nullopt;
  }

  std::size_t workspace_bytes(const Case& c, const DeviceLimits& /*device*/) const override {
    const Problem& p = c.problem;
    return static_cast<std::size_t>(matrix_bytes(p) + num_rows(p) * static_cast<std::int64_t>(sizeof(float)));
  }

  void launch(const Case& c, const ForwardArgs& args, void* workspace, cudaStream_t stream) override {
    const Problem& p = c.problem;
    unfused::Call call{};
    call.args = args;
    call.batch = static_cast<int>(p.batch);
    call.nheads = static_cast<int>(p.nheads);
    call.nheads_k = static_cast<int>(p.nheads_k);
    call.seqlen_q = static_cast<int>(p.seqlen_q);
    call.seqlen_k = static_cast<int>(p.seqlen_k);
    call.headdim = static_cast<int>(p.headdim);
    call.headdim_v = static_cast<int>(p.headdim_v);
    call.total_q = std::accumulate(p.varlen_q.begin(), p.varlen_q.end(), std::int64_t{0});
    call.softmax_scale = static_cast<float>(effective_softmax_scale(p));
    call.softcap = static_cast<float>(p.softcap);
    call.causal = p.causal != Causal::none;
    call.top_left = p.causal == Causal::top_left;
    call.left = window(p, p.window_left);
    call.right = window(p, p.window_right);
    call.prefix = static_cast<int>(p.prefix);
    call.matrix = workspace;
    call.matrix_stride = unfused_row_stride(p);
    call.sums = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + matrix_bytes(p));
    unfused::launch_scores(call, p.dtype, stream);
    unfused::launch_softmax(call, p.dtype, stream);
    unfused::launch_output(call, p.dtype, stream);
  }

 private:
  Capability capability_;
};

}  // namespace

std::unique_ptr<DeviceForward> make_unfused() { return std::make_unique<Unfused>(); }

}  // namespace attest
