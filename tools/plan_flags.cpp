#include "plan_flags.h"

#include <string>
#include <vector>

#include "attest/plan/ablation_plans.h"
#include "attest/plan/catalog.h"
#include "attest/problem/file.h"
#include "case_flags.h"

namespace attest::tools {

void declare_plan_flags(Flags& flags) {
  flags.value("--plan", "P", "A plan of `attest plans`, or a .json file (attest)");
  flags.values("--set", "FIELD=VALUE", "A field of the plan that is otherwise, such as swizzled=false; repeatable");
}

DeviceSpec read_device(const Flags& flags) {
  const std::string name = flags.text("--device").value_or("h100");
  refuse_unknown("device", name, device_names());
  return load_device(name);
}

void refuse_unknown_plan(const std::string& name) {
  std::vector<std::string> names;
  for (const NamedPlan& plan : named_plans) names.emplace_back(plan.name);
  for (const NamedPlan& plan : ablation_plans) names.emplace_back(plan.name);
  refuse_unknown("plan", name, names);
}

void check_plan_flags(const Flags& flags) {
  if (const auto name = flags.text("--plan")) {
    refuse_unknown_plan(*name);
    constexpr std::size_t most_bytes = 1 << 20;
    if (name->find_first_of("./") != std::string::npos) (void)read_file("plan", *name, most_bytes);
  }
  (void)plan_conditions("set", flags.texts("--set"));
}

DescribedPlan read_plan(const Flags& flags, const Case& c, const DeviceSpec& device, std::string_view named) {
  const std::string name = named.empty() ? flags.text("--plan").value_or("attest") : std::string(named);
  refuse_unknown_plan(name);
  DescribedPlan plan = load_plan(name, c, device);
  set_plan_fields(plan, flags.texts("--set"), c, device);
  return plan;
}

}  // namespace attest::tools
