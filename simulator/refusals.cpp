#include "refusals.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>

#include "attest/plan/ablation_plans.h"
#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "attest/simulator/plan_file.h"
#include "attest/simulator/report.h"
#include "compiled_registers.h"

namespace attest {
namespace {

/// The first field that the cost models do not describe, and what it is.
struct Undescribed {
  const char *field = nullptr, *what = nullptr;
};

Undescribed undescribed(const Case& c) {
  const std::pair<bool, Undescribed> fields[] = {
      {is_fp8(c.problem.dtype), {"dtype", "8-bit inputs"}},
      {c.backward, {"backward", "the backward"}},
  };
  for (const auto& [asked, field] : fields)
    if (asked) return field;
  return {};
}

void check_ablation(std::string_view name, const Case& c) {
  const auto is_named = [&](const NamedPlan& named) { return named.name == name; };
  if (std::none_of(std::begin(ablation_plans), std::end(ablation_plans), is_named)) return;
  const auto fault = ablation_fault(c);
  if (!fault) return;
  const auto value = to_json(c).at(std::string(fault->field));
  throw InvalidInput(fault->field, value.is_string() ? fmt::format("'{}'", value.get<std::string>()) : value.dump(),
                     fmt::format("{}, and --plan {} takes nothing else", fault->limit, name));
}

}  // namespace

void check_own_kernel(std::string_view kernel, const Case& c) {
  const Dtype dtype = c.problem.dtype;
  const auto refuse = [&](std::string_view field, const std::string& value, std::string_view limit) {
    throw InvalidInput(field, value, fmt::format("{}, and kernel {} takes nothing else", limit, kernel));
  };
  const std::string type = fmt::format("'{}'", to_string(dtype));
  if (kernel == "sm80" && dtype != Dtype::fp16 && dtype != Dtype::bf16)
    refuse("dtype", type, "is neither fp16 nor bf16");
  if (kernel != "unfused") return;
  if (is_fp8(dtype)) refuse("dtype", type, "is none of fp16, bf16, fp32");
  if (c.num_splits > 1) refuse("num_splits", std::to_string(c.num_splits), "is above 1");
  if (c.backward) refuse("backward", "true", "is not false");
}

void check(const Case& c, const KernelPlan& plan, const DeviceSpec& device) {
  validate(c);
  if (const Undescribed lacking = undescribed(c); lacking.field != nullptr)
    throw InvalidInput(lacking.field, lacking.what, "is nothing that the cost models describe");
  if (const auto fault = plan_fault(plan, c, device)) throw InvalidInput(fault->field, fault->value, fault->limit);
}

void check_resident(int ctas_per_sm, const DeviceSpec& device) {
  constexpr std::int64_t most_resident = 16384;
  if (const std::int64_t resident = device.num_sms * ctas_per_sm; resident > most_resident)
    throw InvalidInput("num_sms", fmt::format("{}", device.num_sms),
                       fmt::format("with {} CTAs of this plan an SM makes {} CTAs at a time, must not exceed {}",
                                   ctas_per_sm, resident, most_resident));
}

std::optional<std::string> unpredicted(const Case& c) {
  const Undescribed lacking = undescribed(c);
  if (lacking.field == nullptr) return std::nullopt;
  return fmt::format("{}: the cost models do not describe {}", lacking.field, lacking.what);
}

PlanTarget plan_target(const DeviceSpec& device) {
  return {static_cast<std::uint32_t>(std::min<std::int64_t>(device.smem_bytes_per_cta_max, ~0u)),
          static_cast<int>(device.compute_capability)};
}

KernelPlan plan_named(std::string_view name, const Case& c, const DeviceSpec& device) {
  validate(c);
  check_ablation(name, c);
  const PlanTarget target = plan_target(device);
  for (const auto plans : {std::span<const NamedPlan>(named_plans), std::span<const NamedPlan>(ablation_plans)})
    for (const NamedPlan& named : plans)
      if (named.name == name) return with_compiled_registers(with_layout(named.make(c, target), c), name, c, device);
  std::string known;
  for (const NamedPlan& named : named_plans) known += (known.empty() ? "" : ", ") + std::string(named.name);
  throw InvalidInput("plan", fmt::format("'{}'", name), fmt::format("is none of {}", known));
}

}  // namespace attest
