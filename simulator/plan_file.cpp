#include "attest/simulator/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "attest/problem/file.h"
#include "attest/problem/json_reader.h"
#include "attest/problem/text.h"
#include "attest/simulator/report.h"

namespace attest {
namespace {

using Json = JsonReader::Json;

constexpr std::string_view schema = "attest/plan/1";

const PlanField* field_named(std::string_view name) {
  const auto fields = plan_fields();
  const auto at = std::find_if(fields.begin(), fields.end(), [&](const PlanField& f) { return f.name == name; });
  return at == fields.end() ? nullptr : &*at;
}

/// Takes `value` for `field`, which must be of its type and within its limits.
struct Assign {
  const JsonReader& reader;
  const PlanField& field;
  const Json& object;
  KernelPlan& plan;

  const Json& value() const { return object.at(std::string(field.name)); }
  template <class Whole>
  void operator()(Whole KernelPlan::*member) const requires std::is_integral_v<Whole> {
    if constexpr (std::is_same_v<Whole, bool>) {
      if (!value().is_boolean()) reader.refuse(field.name, shown_value(value()), "must be true or false");
      plan.*member = value().get<bool>();
    } else {
      plan.*member = static_cast<Whole>(reader.integer(object, field.name, field.name, field.low, field.high));
    }
  }
  template <class Enum>
  void operator()(Enum KernelPlan::*member) const requires std::is_enum_v<Enum> {
    const auto words = plan_words(field);
    const auto at =
        value().is_string() ? std::find(words.begin(), words.end(), value().get<std::string>()) : words.end();
    if (at == words.end())
      reader.refuse(field.name, shown_value(value()), fmt::format("must be one of {}", fmt::join(words, ", ")));
    plan.*member = static_cast<Enum>(at - words.begin());
  }
};

/// The plan with the fields that `object` gives, which are no others than the table's. Copies that are not given are
/// the widest that tensors allow, or, where a plan that has its own is changed, no wider.
KernelPlan with_fields(const JsonReader& reader, const Json& object, const KernelPlan& base, const Case& c,
                       bool keeps_copies) {
  KernelPlan plan = base;
  bool recompiled = false;
  for (const PlanField& field : plan_fields()) {
    if (!object.contains(field.name)) continue;
    std::visit(Assign{reader, field, object, plan}, field.member);
    recompiled =
        recompiled || (field.kind == PlanField::Kind::compiled && plan_value(plan, field) != plan_value(base, field));
  }
  if (recompiled)
    for (const PlanField& field : plan_fields()) {
      if (field.kind != PlanField::Kind::known || object.contains(field.name)) continue;
      const auto known = std::get<int KernelPlan::*>(field.member);
      plan.*known = KernelPlan{}.*known;
    }
  const KernelPlan allowed = with_layout(plan, c);
  for (const PlanField& field : plan_fields()) {
    if (!field.name.starts_with("copy_bytes")) continue;
    const auto granule = std::get<int KernelPlan::*>(field.member);
    if (!object.contains(field.name))
      plan.*granule = keeps_copies ? std::min(plan.*granule, allowed.*granule) : allowed.*granule;
    if (plan.*granule > allowed.*granule)
      reader.refuse(field.name, fmt::format("{}", plan.*granule),
                    fmt::format("is wider than the {} that the case's strides and base allow", allowed.*granule));
  }
  return plan;
}

/// Refuses registers that no compiler gives a thread, or that the device does not have for it.
void check_registers(const JsonReader& reader, const KernelPlan& plan, const DeviceSpec& device) {
  constexpr int fewest = 16;  // a device's registers_per_thread_max has as many
  const std::string known = fmt::format("{}", plan.known_registers);
  if (plan.known_registers != 0 && plan.known_registers < fewest)
    reader.refuse("known_registers", known, fmt::format("is neither 0, which estimates them, nor at least {}", fewest));
  if (device.kind == DeviceKind::gpu && plan.known_registers > device.registers_per_thread_max)
    reader.refuse(
        "known_registers", known,
        fmt::format("is more than registers_per_thread_max = {} of {}", device.registers_per_thread_max, device.name));
}

/// Refuses what no kernel of that device, for those tensors, can be.
void check(const JsonReader& reader, const KernelPlan& plan, const Case& c, const DeviceSpec& device) {
  if (const auto fault = plan_fault(plan, c, device)) {
    if (fault->field == fault->case_field) throw InvalidInput(fault->field, fault->value, fault->limit);
    reader.refuse(fault->field, fault->value, fault->limit);
  }
  if (plan.known_registers == 0)
    for (const auto& [name, words] : {std::pair{"spill_words_per_key_tile", plan.spill_words_per_key_tile},
                                      std::pair{"spill_words_per_cta", plan.spill_words_per_cta},
                                      std::pair{"spill_words_at_start", plan.spill_words_at_start},
                                      std::pair{"producer_spill_sectors", plan.producer_spill_sectors}})
      if (words != 0) reader.refuse(name, fmt::format("{}", words), "needs known_registers beside it");
  if (plan.spill_words_at_start != 0 && plan.persistence == Persistence::none)
    reader.refuse("spill_words_at_start", fmt::format("{}", plan.spill_words_at_start),
                  "needs a persistence other than none: each CTA has one query tile");
  if (plan.producer_spill_sectors != 0 && plan.producer_warps == 0)
    reader.refuse("producer_spill_sectors", fmt::format("{}", plan.producer_spill_sectors), "needs producer_warps");
  if (plan.spill_words_entering > plan.spill_words_per_cta)
    reader.refuse("spill_words_entering", fmt::format("{}", plan.spill_words_entering),
                  fmt::format("is more than spill_words_per_cta = {}", plan.spill_words_per_cta));
  if (plan.exp_instructions != 1 && plan.exp_instructions != 4)
    reader.refuse("exp_instructions", fmt::format("{}", plan.exp_instructions), "is neither 1 nor 4");
  check_registers(reader, plan, device);
}

KernelPlan defaults(const Case& c) {
  KernelPlan plan;
  plan.headdim = static_cast<int>(c.problem.headdim);
  plan.headdim_v = static_cast<int>(c.problem.headdim_v);
  plan.element_bytes = bytes_of(c.problem.dtype);
  return plan;
}

/// "FIELD=VALUE" as the member of a file it stands for: what is no JSON is a word.
std::pair<std::string, Json> assignment(std::string_view flag, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw InvalidInput(flag, fmt::format("'{}'", text.substr(0, 60)), "is not FIELD=VALUE");
  const std::string value = text.substr(equals + 1);
  Json json = Json::parse(value, nullptr, false);
  if (is_beyond_float64(value))
    JsonReader(fmt::format("--{}", flag)).refuse(text.substr(0, equals), shown_number(value), no_float64);
  if (json.is_discarded() || json.is_structured()) json = value.substr(0, 60);
  return {text.substr(0, equals), std::move(json)};
}

std::string known_fields() {
  std::string names;
  for (const PlanField& field : plan_fields()) names += fmt::format("{}{}", names.empty() ? "" : ", ", field.name);
  return names;
}

/// All of them as an object that a file could hold: known fields, each once.
Json assigned(std::string_view flag, std::span<const std::string> assignments) {
  Json object = Json::object();
  for (const std::string& text : assignments) {
    const auto [name, value] = assignment(flag, text);
    if (field_named(name) == nullptr)
      throw InvalidInput(flag, fmt::format("'{}'", name.substr(0, 60)), fmt::format("is none of {}", known_fields()));
    if (object.contains(name)) JsonReader(fmt::format("--{}", flag)).refuse(name, "set twice;", "must be set once");
    object[name] = value;
  }
  return object;
}

}  // namespace

PlanFault plan_fault(const KernelPlan& plan, std::string_view why) {
  const std::string_view name = why.substr(0, why.find(' '));
  PlanFault fault{std::string(name), plan_text(plan, *field_named(name)), std::string(why.substr(name.size() + 1))};
  for (std::size_t open; (open = fault.limit.find('{')) != std::string::npos;) {
    const std::size_t close = fault.limit.find('}', open);
    const std::string other = fault.limit.substr(open + 1, close - open - 1);
    fault.limit.replace(open, close - open + 1, plan_text(plan, *field_named(other)));
  }
  return fault;
}

DescribedPlan plan_from_json_text(std::string_view text, std::string_view file, const Case& c,
                                  const DeviceSpec& device) {
  const JsonReader reader(file);
  Json json = reader.parse("plan", text);
  std::string said = reader.text(json, "schema", "schema");
  if (said != schema && said.starts_with("attest/") && json.contains("plan")) {  // a report
    json = Json(json["plan"]);
    if (!json.is_object()) reader.refuse("plan", shown_value(json), "must be an object");
    said = reader.text(json, "schema", "schema");
  }
  if (said != schema) reader.refuse("schema", fmt::format("'{}'", said.substr(0, 40)), "is not attest/plan/1");
  for (const auto& item : json.items())
    if (item.key() != "schema" && item.key() != "name" && item.key() != "description" && item.key() != "base" &&
        field_named(item.key()) == nullptr)
      reader.refuse(shown_name(item.key()), "unknown field;", "remove it or correct its name");
  DescribedPlan plan{.name = std::string(file.substr(0, file.rfind(".json"))), .plan = {}};
  plan.name = escaped(plan.name.substr(plan.name.rfind('/') + 1));
  for (const char* const words : {"name", "description", "base"})
    if (json.contains(words)) (void)reader.text(json, words, words);
  if (json.contains("name")) plan.name = json["name"].get<std::string>();
  KernelPlan base = defaults(c);
  if (json.contains("base")) {
    const std::string name = json["base"].get<std::string>();
    std::vector<std::string_view> names;
    for (const NamedPlan& named : named_plans) names.push_back(named.name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      reader.refuse("base", fmt::format("'{}'", name.substr(0, 40)),
                    fmt::format("is none of {}", fmt::join(names, ", ")));
    base = plan_named(name, c, device);
  }
  plan.plan = with_fields(reader, json, base, c, false);
  check(reader, plan.plan, c, device);
  return plan;
}

DescribedPlan load_plan(const std::string& name_or_path, const Case& c, const DeviceSpec& device) {
  if (!is_path(name_or_path)) {
    DescribedPlan plan{name_or_path, plan_named(name_or_path, c, device)};
    const std::string where = "plan " + name_or_path;
    check_registers(JsonReader(where), plan.plan, device);
    return plan;
  }
  return plan_from_json_text(read_file("plan", name_or_path, largest_description_bytes), name_or_path, c, device);
}

void set_plan_fields(DescribedPlan& plan, std::span<const std::string> assignments, const Case& c,
                     const DeviceSpec& device, std::string_view flag) {
  if (assignments.empty()) return;
  const std::string where = fmt::format("--{}", flag);
  const JsonReader reader(where);
  const Json object = assigned(flag, assignments);
  for (const auto& [name, value] : object.items())
    plan.name += fmt::format(" {}={}", name, value.is_string() ? value.get<std::string>() : value.dump());
  plan.plan = with_fields(reader, object, plan.plan, c, true);
  check(reader, plan.plan, c, device);
}

std::string plan_text(const KernelPlan& plan, const PlanField& field) {
  const Json value = plan_value(plan, field);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::vector<PlanCondition> plan_conditions(std::string_view flag, std::span<const std::string> assignments) {
  const std::string where = fmt::format("--{}", flag);
  const JsonReader reader(where);
  const Json object = assigned(flag, assignments);
  std::vector<PlanCondition> conditions;
  KernelPlan wanted;
  for (const auto& [name, value] : object.items()) {
    const PlanField& field = *field_named(name);
    std::visit(Assign{reader, field, object, wanted}, field.member);
    conditions.push_back({&field, plan_text(wanted, field)});
  }
  return conditions;
}

}  // namespace attest
