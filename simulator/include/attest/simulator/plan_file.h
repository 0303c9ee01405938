// Plans as data: {"schema": "attest/plan/1", "name", "base", and fields of KernelPlan by their names}, so that a kernel
// somebody else wrote can be described. One table of fields drives reading, writing, refusals and their list.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"
#include "attest/simulator/device.h"

namespace attest {

struct PlanField {
  /// Whether a compiler makes another kernel of it, whose registers and spill are not those known of the first.
  enum class Kind : std::uint8_t { compiled, placed, known };
  using Member = std::variant<int KernelPlan::*, std::int64_t KernelPlan::*, bool KernelPlan::*, CopyKind KernelPlan::*,
                              MatrixKind KernelPlan::*, GridOrder KernelPlan::*, Persistence KernelPlan::*,
                              KeyOrder KernelPlan::*, Overlap KernelPlan::*>;
  std::string_view name;
  Member member;
  double low = 0, high = 0;  // of numbers, inclusive
  Kind kind = Kind::compiled;
  std::string_view doc;
};

/// Every field of KernelPlan but those that a case asks for (softcap, alibi, bias, sink, num_splits).
std::span<const PlanField> plan_fields();

/// What makes a plan impossible: the field at fault by its name, its value and its limit.
struct PlanFault {
  std::string field, value, limit;
  std::string_view reason = "cannot exist";  // in two or three words
  std::string_view case_field = {};          // the case's, where another value of that would do; else empty
};

/// The fault that `why`, a sentence of KernelPlan::invalid(), says of the plan; the values of other fields that it
/// names are filled in.
PlanFault plan_fault(const KernelPlan& plan, std::string_view why);

/// Why no kernel on `device` can be that plan for the tensors of `c`, or none that the cost models describe: what its
/// fields and the case's features forbid each other, head dimensions, elements or heads of another case, what the
/// device or the model of it lacks, or what copies by TMA cannot address. A tensor map has strides and a base of
/// multiples of 16 bytes (CUDA Driver API, cuTensorMapEncodeTiled; strides of 2^40 bytes, its other limit, need more
/// elements than validate() admits of 16 bits each).
std::optional<PlanFault> plan_fault(const KernelPlan& plan, const Case& c, const DeviceSpec& device);

/// A field's value as a plan file has it: a number, true or false, or a word.
nlohmann::ordered_json plan_value(const KernelPlan& plan, const PlanField& field);

/// The words that a field of an enumeration takes; empty for the others.
std::span<const std::string_view> plan_words(const PlanField& field);

/// A plan with the name it goes by in reports.
struct DescribedPlan {
  std::string name;
  KernelPlan plan;
};

/// What --plan FILE reads: every field.
nlohmann::ordered_json to_json(const DescribedPlan& plan);

/// Reads a plan for a case on a device. Fields left out have KernelPlan's defaults or, with "base", those of the plan
/// of that name; headdim, headdim_v and element_bytes those of the case; copies what the case's layout allows. Where a
/// field of kind `compiled` differs from the base's, registers and spill known of the base are forgotten. A report with
/// such a plan under "plan" is read too. Throws InvalidInput naming the field, its value, the limit and `file`.
DescribedPlan plan_from_json_text(std::string_view text, std::string_view file, const Case& c,
                                  const DeviceSpec& device);

/// The plan that `name_or_path` says: one of the named plans, or a file (what ends in .json or has a '/').
DescribedPlan load_plan(const std::string& name_or_path, const Case& c, const DeviceSpec& device);

/// `plan` with fields changed as each "FIELD=VALUE" of `flag` says, checked like a file's. Throws InvalidInput naming
/// the field.
void set_plan_fields(DescribedPlan& plan, std::span<const std::string> assignments, const Case& c,
                     const DeviceSpec& device, std::string_view flag = "set");

/// That a field of a plan has a value.
struct PlanCondition {
  const PlanField* field = nullptr;
  std::string value;  // as plan_text() writes it

  bool operator==(const PlanCondition&) const = default;
};

/// A field's value as "FIELD=VALUE" has it.
std::string plan_text(const KernelPlan& plan, const PlanField& field);

/// What "FIELD=VALUE", one each, asks of a plan. Throws InvalidInput naming the field, or `flag` that said it.
std::vector<PlanCondition> plan_conditions(std::string_view flag, std::span<const std::string> assignments);

}  // namespace attest
