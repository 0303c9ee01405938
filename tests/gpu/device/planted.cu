#include <cuda_fp16.h>

#include "attest/gpu/cuda_error.h"
#include "planted.h"

namespace attest {
namespace {

struct Extents {
  std::int64_t batch, seqlen_q, nheads, headdim_v;
};

__global__ void write(Extents e, ForwardArgs args, Plant plant, void* workspace, std::int64_t far) {
  auto* const o = static_cast<__half*>(args.o.data);
  const std::int64_t last = e.batch * e.seqlen_q * e.nheads * e.headdim_v - 1;
  for (std::int64_t at = threadIdx.x; at <= last; at += blockDim.x) {
    const std::int64_t d = at % e.headdim_v, h = at / e.headdim_v % e.nheads;
    const std::int64_t i = at / (e.headdim_v * e.nheads) % e.seqlen_q, b = at / (e.headdim_v * e.nheads * e.seqlen_q);
    auto value = static_cast<float>(b + 2 * i + 16 * h + 64 * d);
    if (plant == Plant::reads_workspace) {
      const float held = static_cast<float*>(workspace)[at % 1024];
      value = held != held ? 1 : 0;
    }
    if (plant != Plant::skips_an_element || at != last)
      o[b * args.o.batch_stride + i * args.o.row_stride + h * args.o.head_stride + d] = __float2half(value);
    if (d == 0) args.lse[(b * e.nheads + h) * e.seqlen_q + i] = static_cast<float>(b + 10 * h + 100 * i);
  }
  if (threadIdx.x != 0) return;
  if (plant == Plant::writes_gap) o[e.headdim_v] = __float2half(1);
  if (plant == Plant::writes_before_o) args.lse[-1] = 1;
  if (plant == Plant::writes_input) *static_cast<__half*>(args.q.data) = __float2half(77);
  if (plant == Plant::writes_far) *reinterpret_cast<double*>(reinterpret_cast<char*>(args.lse) + far) = 1;
  if (plant == Plant::writes_workspace)
    *reinterpret_cast<float*>(static_cast<char*>(workspace) + PlantedForward::workspace_bytes_) = 1;
  if (plant == Plant::crashes) *reinterpret_cast<volatile int*>(16) = 1;
}

}  // namespace

void PlantedForward::launch(const Case& c, const ForwardArgs& args, void* workspace, cudaStream_t stream) {
  last = args;
  const Problem& p = c.problem;
  constexpr std::size_t too_much = 1 << 20;
  const std::size_t smem = plant_ == Plant::takes_too_much ? too_much : 0;
  // LSE is the last range of these cases: its margin is 512 bytes and its zone follows.
  const std::int64_t lse_bytes = p.batch * p.nheads * p.seqlen_q * 4, far = (lse_bytes + 512 + 7) / 8 * 8 + 64;
  write<<<1, 128, smem, stream>>>({p.batch, p.seqlen_q, p.nheads, p.headdim_v}, args, plant_, workspace, far);
  cuda_check_launch("planted");
}

}  // namespace attest
