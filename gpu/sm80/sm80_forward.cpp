#include "attest/sm80/sm80_forward.h"

#include <fmt/format.h>

#include "attest/plan/sm80_tiles.h"

namespace attest {
namespace {

constexpr std::int64_t max_grid_yz = 65535;  // heads and batch entries; x, the tiles and splits, has 2^31 - 1

class Sm80Forward : public DeviceForward {
 public:
  Sm80Forward() {
    capability_.name = "sm80";
    capability_.description = "FlashAttention-2 style for sm_80 and later: cp.async, ldmatrix, mma.sync, lazy rescale";
    capability_.dtypes = {Dtype::fp16, Dtype::bf16};
    capability_.bitwise_batch = true;
    capability_.bitwise_gqa = true;
    capability_.bitwise_layout = true;
  }
  const Capability& capability() const override { return capability_; }

  Numerics numerics(const Case& c) const override {
    Numerics n = flash_numerics(c.problem.dtype, sm80_plan(sm80_tile(c.problem)).tile_n);
    n.max_P = 256;                   // lazy rescale
    n.lse_max_roundings = 5;         // through base 2
    n.eps_tanh = 0x1p-11 + 4 * u32;  // tanh.approx, of a quotient within 2 ulp
    n.num_splits = static_cast<int>(c.num_splits);
    return n;
  }

  std::optional<std::string> unsupported(const Case& c, const DeviceLimits& device) const override {
    const Problem& p = c.problem;
    if (p.dtype != Dtype::fp16 && p.dtype != Dtype::bf16)
      return fmt::format("dtype={} is neither fp16 nor bf16", to_string(p.dtype));
    if (c.backward) return "backward: the sm80 kernel computes O and LSE only";
    const KernelPlan plan = sm80_plan(sm80_tile(p, Sm80Kind::general));  // its tiles are the larger ones
    if (plan.smem_bytes() > device.smem_bytes_per_block)
      return fmt::format("headdim={} takes {} bytes of shared memory a block, above the device's {}", p.headdim,
                         plan.smem_bytes(), device.smem_bytes_per_block);
    if (p.nheads > max_grid_yz) return fmt::format("nheads={} is above a grid's {}", p.nheads, max_grid_yz);
    if (p.batch > max_grid_yz) return fmt::format("batch={} is above a grid's {}", p.batch, max_grid_yz);
    return std::nullopt;
  }

  std::string plan(const Case& /*c*/) const override { return R"({"schema": "attest/plan/1", "base": "attest"})"; }

  std::size_t workspace_bytes(const Case& c, const DeviceLimits&) const override { return sm80::workspace_bytes(c); }

  void launch(const Case& c, const ForwardArgs& args, void* workspace, cudaStream_t stream) override {
    sm80::launch_forward(c, sm80::make_params(c, args, workspace), stream);
  }

 private:
  Capability capability_;
};

}  // namespace

std::unique_ptr<DeviceForward> make_sm80_forward() { return std::make_unique<Sm80Forward>(); }

}  // namespace attest
