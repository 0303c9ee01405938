// The CPU kernel: the recorded forward behind the Kernel interface, its tiles chosen at run time.
#pragma once
#include <string_view>
#include <unordered_map>

#include "attest/gpu/kernel.h"
#include "attest/plan/catalog.h"
#include "attest/simulator/cpu_forward.h"

namespace attest {

/// What a user may fix of a CPU plan; 0 or unset fields are drawn from the case's seed.
struct CpuPlanSpec {
  int tile_m = 0, tile_n = 0, num_warps = 0, stages = 0;
  int q_in_registers = -1, lazy_rescale = -1, merged_wait = -1;  // -1: drawn
};

/// "tile_m=64,tile_n=32,warps=4,stages=2,q_in_registers=1,lazy_rescale=0,merged_wait=1", any subset, or nothing. Throws
/// InvalidInput naming the field.
CpuPlanSpec parse_cpu_plan_spec(std::string_view text);

/// The plan that the CPU kernel runs a case with: a pure function of both arguments. Throws InvalidInput if the fields
/// that were fixed make no kernel.
KernelPlan cpu_plan(const CpuPlanSpec& spec, const Case& c);

/// Hazards of the forward's programs, remembered: programs that touch shared memory alike are checked once. A case of
/// thousands of keys has a long program for every query tile, which differ in length alone: of new ones it checks the
/// first, the last, and then as many as `max_new_steps` allows.
template <class Plan>
class HazardMemory {
 public:
  std::vector<std::string> check(const Plan& plan, const Problem& p);

 private:
  static constexpr std::size_t max_new_steps = 2000;
  std::unordered_map<std::string, std::vector<std::string>> seen_;
};

/// `Plan` is KernelPlan, or a type that derives from it and hides a member: a planted bug.
template <class Plan = KernelPlan>
class CpuKernel : public Kernel {
 public:
  explicit CpuKernel(CpuPlanSpec spec = {}, Capability capability = cpu_capability())
      : spec_(spec), capability_(std::move(capability)) {}

  static Capability cpu_capability();
  const Capability& capability() const override { return capability_; }
  Numerics numerics(const Case& c) const override;
  std::optional<std::string> unsupported(const Case&) const override { return std::nullopt; }
  RunReport run(const Case& c, const ForwardArgs& args) override;

 private:
  Plan plan(const Case& c) const {
    Plan plan;
    static_cast<KernelPlan&>(plan) = cpu_plan(spec_, c);
    return plan;
  }
  CpuPlanSpec spec_;
  Capability capability_;
  HazardMemory<Plan> hazards_;
};

// ---- bodies

/// What shared memory sees of a program: steps without the rows they stand for.
inline std::string shape_of(const KernelPlan& plan, const Program& program) {
  std::string key(reinterpret_cast<const char*>(&plan), sizeof(KernelPlan));
  const auto& steps = program.warps.front();
  const int last_tile = steps.empty() ? 0 : (program.work.seqlen_k + plan.tile_n - 1) / plan.tile_n;
  for (const auto& warp : program.warps) {
    for (const Step& s : warp) {
      const bool store = s.kind == Step::Kind::store;
      const int valid = store ? std::clamp(s.limit - program.work.q_tile * plan.tile_m, 0, plan.tile_m) : 0;
      const std::int32_t fields[] = {static_cast<std::int32_t>(s.kind) << 8 | static_cast<std::int32_t>(s.operand),
                                     s.slot, last_tile - s.tile, valid};
      key.append(reinterpret_cast<const char*>(fields), sizeof fields);
    }
    key.push_back('|');
  }
  return key;
}

template <class Plan>
std::vector<std::string> HazardMemory<Plan>::check(const Plan& plan, const Problem& p) {
  std::vector<std::string> names;
  const int tiles = num_q_tiles(plan, p);
  std::size_t new_steps = 0;
  for (int i = 0; i < tiles; ++i) {
    const int tile = i == 0 ? 0 : tiles - i;
    const Program program = record(plan, make_work(p, tile));
    if (program.warps.front().empty()) continue;
    const std::string shape = shape_of(plan, program);
    auto at = seen_.find(shape);
    if (at == seen_.end()) {
      if (i > 1 && new_steps > max_new_steps) continue;
      new_steps += program.warps.front().size();
      if (seen_.size() > 4096) seen_.clear();
      at = seen_.emplace(shape, std::vector<std::string>{}).first;
      for (const Hazard& hazard : find_hazards(plan, program)) at->second.push_back(hazard.what);
    }
    for (const std::string& name : at->second)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

template <class Plan>
Capability CpuKernel<Plan>::cpu_capability() {
  Capability c;
  c.name = "cpu";
  c.description = "FlashAttention-2 style forward, recorded from the kernels' own roles and run on the CPU";
  c.dtypes = {Dtype::fp16, Dtype::bf16, Dtype::fp32};
  c.bitwise_batch = true;
  c.bitwise_gqa = true;
  c.bitwise_layout = true;
  return c;
}

template <class Plan>
Numerics CpuKernel<Plan>::numerics(const Case& c) const {
  const KernelPlan plan = cpu_plan(spec_, c);
  Numerics n = flash_numerics(c.problem.dtype, plan.tile_n);
  n.max_P = plan.lazy_rescale ? 256 : 1;
  return n;
}

template <class Plan>
RunReport CpuKernel<Plan>::run(const Case& c, const ForwardArgs& args) {
  const Plan kernel = plan(c);
  forward_on_cpu(kernel, c.problem, args);
  return {hazards_.check(kernel, c.problem)};
}

}  // namespace attest
