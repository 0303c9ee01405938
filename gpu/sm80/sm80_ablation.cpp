#include <fmt/format.h>

#include "ablations.h"
#include "attest/plan/ablation_plans.h"
#include "attest/problem/error.h"
#include "attest/sm80/ablation.h"
#include "attest/sm80/sm80_forward.h"

namespace attest {
namespace {

class Ablated : public DeviceForward {
 public:
  explicit Ablated(const NamedAblation& named) : ablation_(named.ablation), plain_(make_sm80_forward()) {
    capability_ = plain_->capability();
    capability_.name = named.name;
    capability_.description = named.description;
    capability_.dtypes = {Dtype::bf16};
  }
  const Capability& capability() const override { return capability_; }
  Numerics numerics(const Case& c) const override { return plain_->numerics(c); }

  std::optional<std::string> unsupported(const Case& c, const DeviceLimits& device) const override {
    if (c.problem.dtype != Dtype::bf16) return fmt::format("dtype={} is not bf16", to_string(c.problem.dtype));
    if (auto reason = plain_->unsupported(c, device)) return reason;
    if (const auto fault = ablation_fault(c))
      return fmt::format("its {} {}, and an ablation runs nothing else", fault->field, fault->limit);
    return std::nullopt;
  }

  std::size_t workspace_bytes(const Case& c, const DeviceLimits&) const override { return sm80::workspace_bytes(c); }

  void launch(const Case& c, const ForwardArgs& args, void* workspace, cudaStream_t stream) override {
    sm80::launch_ablation(c, sm80::make_params(c, args, workspace), ablation_, stream);
  }

 private:
  Sm80Ablation ablation_;
  std::unique_ptr<DeviceForward> plain_;
  Capability capability_;
};

}  // namespace

std::unique_ptr<DeviceForward> make_sm80_ablation(Sm80Ablation ablation) {
  return std::make_unique<Ablated>(named(ablation));
}

void sm80::launch_ablation(const Case& c, const ForwardParams& params, Sm80Ablation ablation, cudaStream_t stream) {
  if (c.problem.dtype != Dtype::bf16)
    throw InvalidInput("dtype", to_string(c.problem.dtype), "is not an ablation's bf16");
  if (params.tile != Sm80Tile::d128 || params.kind() != Sm80Kind::fast)
    throw InvalidInput("kernel", fmt::format("'{}'", named(ablation).name), ablation_limit);
  launch_forward(c, params, ablation_function(ablation), with_ablation(sm80_plan(Sm80Tile::d128), ablation), stream);
}

}  // namespace attest
