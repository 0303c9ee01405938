#include "refusals.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>

#include "attest/plan/ablation_plans.h"
#include "attest/plan/catalog.h"
#include "attest/plan/unfused.h"
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

bool is_ablation(std::string_view name) {
  return std::ranges::any_of(ablation_plans, [&](const NamedPlan& named) { return named.name == name; });
}

/// `what` takes nothing else.
[[noreturn]] void refuse(std::string_view what, const Case& c, std::string_view field, std::string_view limit) {
  const auto value = to_json(c).value(std::string(field), nlohmann::json());
  throw InvalidInput(field, value.is_string() ? fmt::format("'{}'", value.get<std::string>()) : value.dump(),
                     fmt::format("{}, and {} takes nothing else", limit, what));
}

void check_ablation(std::string_view name, const Case& c, std::string_view what) {
  if (!is_ablation(name)) return;
  if (const auto fault = ablation_fault(c)) refuse(what, c, fault->field, fault->limit);
}

}  // namespace

void check_own_kernel(std::string_view kernel, const Case& c) {
  const Problem& p = c.problem;
  const std::string what = fmt::format("kernel {}", kernel);
  const bool flash = kernel == "sm80" || is_ablation(kernel), unfused = kernel == "unfused";
  if (!flash && !unfused) return;
  constexpr std::int64_t most = 65535;
  const std::tuple<bool, std::string_view, std::string_view> faults[] = {
      {flash && bytes_of(p.dtype) != 2, "dtype", "is neither fp16 nor bf16"},
      {unfused && is_fp8(p.dtype), "dtype", "is none of fp16, bf16, fp32"},
      {c.backward, "backward", "is not false"},
      {unfused && c.num_splits > 1, "num_splits", "is above 1"},
      {unfused && !unfused_fits_a_grid(p), "batch", "makes more blocks than a grid's 2147483648"},
      {flash && p.batch > most, "batch", "is above a grid's 65535"},
      {flash && p.nheads > most, "nheads", "is above a grid's 65535"},
  };
  for (const auto& [at_fault, field, limit] : faults)
    if (at_fault) refuse(what, c, field, limit);
  check_ablation(kernel, c, what);
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
  check_ablation(name, c, fmt::format("--plan {}", name));
  const PlanTarget target = plan_target(device);
  for (const auto plans : {std::span<const NamedPlan>(named_plans), std::span<const NamedPlan>(ablation_plans)})
    for (const NamedPlan& named : plans)
      if (named.name == name) return with_compiled_registers(with_layout(named.make(c, target), c), name, c, device);
  std::string known;
  for (const NamedPlan& named : named_plans) known += (known.empty() ? "" : ", ") + std::string(named.name);
  throw InvalidInput("plan", fmt::format("'{}'", name), fmt::format("is none of {}", known));
}

}  // namespace attest
