#include "device_features.h"

#include <fmt/format.h>

#include <utility>

#include "attest/plan/launch.h"
#include "attest/simulator/unified_buffer.h"

namespace attest {
namespace {

std::optional<PlanFault> beyond_tensor_maps(const KernelPlan& plan, const Case& c) {
  if (plan.copy_kind != CopyKind::tma) return std::nullopt;
  constexpr std::int64_t unit = 16;
  const auto refuse = [](std::string_view field, std::string limit) {
    return PlanFault{"copy_kind", "tma", std::move(limit), "unaligned for TMA", field};
  };
  // a row with its gap is the innermost stride, of which the others are multiples
  for (const auto& [field, columns] :
       {std::pair{"headdim", c.problem.headdim}, std::pair{"headdim_v", c.problem.headdim_v}})
    if (const std::int64_t bytes = (columns + c.layout.row_gap) * plan.element_bytes; bytes % unit != 0)
      return refuse(columns * plan.element_bytes % unit == 0 ? "layout" : field,
                    fmt::format("needs strides of multiples of {} bytes, and {} = {} with row_gap = {} makes them {}",
                                unit, field, columns, c.layout.row_gap, bytes));
  if (const std::int64_t bytes = c.layout.base_offset * plan.element_bytes; bytes % unit != 0)
    return refuse("base_offset",
                  fmt::format("needs tensors that begin at multiples of {} bytes, and base_offset = {} makes it {}",
                              unit, c.layout.base_offset, bytes));
  return std::nullopt;
}

std::optional<PlanFault> of_another_case(const KernelPlan& plan, const Problem& p) {
  struct Same {
    const char* field;
    std::int64_t of_plan, of_case;
  };
  for (const Same& same : {Same{"headdim", plan.headdim, p.headdim}, Same{"headdim_v", plan.headdim_v, p.headdim_v},
                           Same{"element_bytes", plan.element_bytes, bytes_of(p.dtype)}})
    if (same.of_plan != same.of_case)
      return PlanFault{same.field, fmt::format("{}", same.of_plan),
                       fmt::format("of the plan is not the case's {}", same.of_case), "of another case"};
  if (const std::int64_t sharing = p.nheads / p.nheads_k; sharing % plan.packed_heads != 0)
    return PlanFault{"packed_heads", fmt::format("{}", plan.packed_heads),
                     fmt::format("does not divide the {} query heads of a key head", sharing), "of another case",
                     "nheads"};
  return std::nullopt;
}

}  // namespace

std::optional<PlanFault> lacking_feature(const KernelPlan& plan, const DeviceSpec& device) {
  struct Need {
    bool asked;
    std::string_view field;
    std::string value;
    int compute_capability;
    std::string_view reason;
  };
  const bool gpu = device.kind == DeviceKind::gpu;
  // what is not a CUDA device may copy in its own way what cp.async stands for
  const bool copies_async = plan.copy_kind == CopyKind::cp_async && gpu && device.compute_capability != 0;
  const Need needs[] = {
      {plan.matrix_kind == MatrixKind::wgmma, "matrix_kind", "wgmma", 90, "no wgmma"},
      {plan.copy_kind == CopyKind::tma, "copy_kind", "tma", 90, "no TMA"},
      {plan.cluster > 1, "cluster", fmt::format("{}", plan.cluster), 90, "no clusters"},
      {plan.element_bytes == 1 && gpu, "element_bytes", "1", 89, "no 8-bit products"},
      {copies_async, "copy_kind", "cp_async", 80, "no cp.async"},
  };
  for (const Need& need : needs) {
    if (!need.asked || device.compute_capability >= need.compute_capability) continue;
    const std::int64_t has = device.compute_capability;
    return PlanFault{std::string(need.field), need.value,
                     fmt::format("needs compute capability {}.{}, and {} has {}", need.compute_capability / 10,
                                 need.compute_capability % 10, device.name,
                                 has == 0 ? "none" : fmt::format("{}.{}", has / 10, has % 10)),
                     need.reason};
  }
  if (plan.matrix_kind == MatrixKind::wgmma && device.wgmma_fma_per_clock_16bit == 0)
    return PlanFault{"matrix_kind", "wgmma",
                     fmt::format("needs wgmma_fma_per_clock_16bit, which is 0 of {}", device.name), "no wgmma"};
  if (gpu && plan.cluster > device.num_sms)
    return PlanFault{"cluster", fmt::format("{}", plan.cluster),
                     fmt::format("is more than num_sms = {} of {}", device.num_sms, device.name), "too few SMs"};
  return exceeds_shared_memory(plan, device);
}

std::optional<PlanFault> plan_fault(const KernelPlan& given, const Case& c, const DeviceSpec& device) {
  const KernelPlan plan = with_features(given, c);
  if (const char* why = plan.invalid(); why != nullptr) return plan_fault(plan, why);
  if (auto fault = of_another_case(plan, c.problem)) return fault;
  if (auto fault = lacking_feature(plan, device)) return fault;
  return device.kind == DeviceKind::gpu ? beyond_tensor_maps(plan, c) : beyond_unified_buffer(plan, c, device);
}

std::optional<PlanFault> exceeds_shared_memory(const KernelPlan& plan, const DeviceSpec& device) {
  if (device.kind != DeviceKind::gpu || plan.smem_bytes() <= device.smem_bytes_per_cta_max) return std::nullopt;
  return PlanFault{"tile_m", fmt::format("{}", plan.tile_m),
                   fmt::format("with tile_n {} and stages {} takes {} bytes of shared memory, more than "
                               "smem_bytes_per_cta_max = {} of {}",
                               plan.tile_n, plan.stages, plan.smem_bytes(), device.smem_bytes_per_cta_max, device.name),
                   "shared memory", plan.headdim_v > plan.headdim ? "headdim_v" : "headdim"};
}

}  // namespace attest
