// attest plans: the kernels' tilings that a prediction can be asked for.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "attest/simulator/device.h"
#include "attest/simulator/plan_file.h"
#include "attest/simulator/report.h"
#include "case_flags.h"
#include "commands.h"
#include "output.h"
#include "plan_flags.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

/// One plan as the file that --plan reads.
ExitCode print_plan(const Flags& flags, const Results& results, const DeviceSpec& device) {
  const Case c = read_case(flags);
  const DescribedPlan plan = read_plan(flags, c, device);
  if (const auto fault = plan_fault(plan.plan, c, device)) throw InvalidInput(fault->field, fault->value, fault->limit);
  results.finish("plans", {{"device", device.name}, {"case", to_json(c)}, {"plan", to_json(plan)}},
                 to_json(plan).dump(2) + "\n");
  return exit_pass;
}

Json fields_json() {
  Json fields = Json::array();
  for (const PlanField& field : plan_fields()) {
    Json entry = {{"field", field.name}, {"default", plan_value(KernelPlan{}, field)}, {"doc", field.doc}};
    if (const auto words = plan_words(field); !words.empty())
      entry["words"] = words;
    else if (entry["default"].is_number())
      entry["low"] = field.low, entry["high"] = field.high;
    fields.push_back(std::move(entry));
  }
  return fields;
}

std::string fields_text() {
  std::string text = "\nFields of a plan file, with their defaults:\n";
  std::size_t names = 0, values = 0;
  for (const PlanField& field : plan_fields()) {
    names = std::max(names, field.name.size());
    values = std::max(values, plan_value(KernelPlan{}, field).dump().size());
  }
  for (const PlanField& field : plan_fields()) {
    const auto words = plan_words(field);
    text += fmt::format("  {:<{}}  {:<{}}  {}{}\n", field.name, names, plan_value(KernelPlan{}, field).dump(), values,
                        field.doc, words.empty() ? "" : fmt::format(" ({})", fmt::join(words, ", ")));
  }
  return text;
}

/// A case alone would change nothing in the list.
void refuse_without_plan(const Flags& flags) {
  std::vector<std::string> given = case_flags_given(flags);
  if (flags.given("--set")) given.emplace_back("--set");
  if (!given.empty()) throw InvalidInput(field_of(given[0]), given[0], "goes with --plan P");
}

ExitCode run(const Flags& flags) {
  const Results results(flags);
  const std::string device_name = flags.text("--device").value_or("h100");
  refuse_unknown("device", device_name, device_names());
  const DeviceSpec device = load_device(device_name);
  if (flags.given("--plan")) return print_plan(flags, results, device);
  refuse_without_plan(flags);
  Json plans = Json::array();
  std::string text = fmt::format("On {}, bf16:\n", device.name);
  for (const NamedPlan& named : named_plans) {
    text += fmt::format("{:<8} {}\n", named.name, named.description);
    Json tilings = Json::array();
    for (const int headdim : {64, 128, 256}) {
      Case c;
      c.problem.headdim = c.problem.headdim_v = headdim;
      const KernelPlan plan = named.make(c, plan_target(device));
      tilings.push_back({{"headdim", headdim},
                         {"tile_m", plan.tile_m},
                         {"tile_n", plan.tile_n},
                         {"num_warps", plan.num_warps},
                         {"stages", plan.stages},
                         {"q_in_registers", plan.q_in_registers},
                         {"lazy_rescale", plan.lazy_rescale},
                         {"swizzled", plan.swizzled},
                         {"smem_bytes", plan.smem_bytes()}});
      text += fmt::format(
          "         headdim {:>3}: {} queries x {} keys, {} warps, {} slot{} of K and V, {} KiB of shared memory\n",
          headdim, plan.tile_m, plan.tile_n, plan.num_warps, plan.stages, plan.stages == 1 ? "" : "s",
          static_cast<double>(plan.smem_bytes()) / 1024);
    }
    plans.push_back({{"name", named.name}, {"description", named.description}, {"tilings", tilings}});
  }
  results.finish("plans", {{"device", device.name}, {"dtype", "bf16"}, {"plans", plans}, {"fields", fields_json()}},
                 text + fields_text());
  return exit_pass;
}

}  // namespace

Command plans_command() {
  return {"plans", "The tilings that can be predicted, and the fields of a plan file",
          "  attest plans --device a100\n"
          "  attest plans --plan fa2 --headdim 128 > my.json   the file that `attest predict --plan my.json` reads",
          [](Flags& flags) {
            flags.group("Plans");
            flags.value("--device", "D", "Whose shared memory they are to fit (h100)");
            declare_plan_flags(flags);
            declare_case_flags(flags);
          },
          run};
}

}  // namespace attest::tools
