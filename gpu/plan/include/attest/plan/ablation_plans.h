// Plans of gpu/sm80's ablations, and what keeps a case from them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "attest/plan/catalog.h"
#include "attest/plan/sm80_ablations.h"
#include "attest/problem/error.h"

namespace attest {

/// Whether gpu/sm80's ablations run a case, and what they say of one that they do not.
constexpr bool has_ablations(const Case& c) {
  const Sm80Choice choice = sm80_choice(c);
  return c.problem.dtype == Dtype::bf16 && choice.tile == Sm80Tile::d128 && choice.kind == Sm80Kind::fast;
}
inline constexpr std::string_view ablation_limit =
    "runs what the tile for head dimension 128 runs by its fast kernel, nothing else";

/// What of a case keeps it from the ablations: a field and the limit that it is beyond.
struct AblationFault {
  std::string_view field, limit;
};
/// None where has_ablations().
inline std::optional<AblationFault> ablation_fault(const Case& c) {
  const Problem& p = c.problem;
  const auto unaligned = [](std::int64_t columns) { return columns % 8 != 0; };
  const bool another_tile = p.headdim > 128 || (p.headdim <= 96 && p.headdim_v <= 96);
  const std::pair<bool, AblationFault> faults[] = {
      {p.dtype != Dtype::bf16, {"dtype", "is not bf16"}},
      {another_tile, {"headdim", "is outside 97 to 128"}},
      {p.headdim_v > 128, {"headdim_v", "is above 128"}},
      {p.seqlen_q <= 16, {"seqlen_q", "is below 17"}},
      {p.softcap != 0, {"softcap", "is not 0"}},
      {p.alibi, {"alibi", "is not false"}},
      {p.bias != Bias::none, {"bias", "is not none"}},
      {p.softmax_scale && !(*p.softmax_scale > 0), {"softmax_scale", "is not above 0"}},
      {p.prefix > 0, {"prefix", "is not 0"}},
      {!p.documents.empty(), {"documents", "is not empty"}},
      {c.layout.page_size != 0, {"page_size", "is not 0"}},
      {unaligned(p.headdim), {"headdim", "is no multiple of 8"}},
      {unaligned(p.headdim_v), {"headdim_v", "is no multiple of 8"}},
      {unaligned(c.layout.base_offset), {"base_offset", "is no multiple of 8"}},
      {unaligned(c.layout.row_gap), {"layout", "has a row_gap that is no multiple of 8"}},
      {!has_ablations(c), {"layout", "puts the rows of a tile 2^31 bytes apart or more"}},
  };
  for (const auto& [at_fault, fault] : faults)
    if (at_fault) return fault;
  return std::nullopt;
}

/// attest_plan() with a mechanism taken away. Throws InvalidInput naming `plan` where gpu/sm80 has no such kernel.
template <Sm80Ablation Ablation>
KernelPlan ablated_plan(const Case& c, const PlanTarget& target) {
  constexpr std::string_view name = named(Ablation).name;
  if (!has_ablations(c)) throw InvalidInput("plan", "'" + std::string(name) + "'", ablation_limit);
  return with_ablation(attest_plan(c, target.max_smem_bytes), Ablation);
}

/// What `--plan` takes besides.
inline constexpr NamedPlan ablation_plans[] = {
    {sm80_ablations[0].name, sm80_ablations[0].description, ablated_plan<Sm80Ablation::no_swizzle>},
    {sm80_ablations[1].name, sm80_ablations[1].description, ablated_plan<Sm80Ablation::sync_copies>},
    {sm80_ablations[2].name, sm80_ablations[2].description, ablated_plan<Sm80Ablation::no_skip>},
    {sm80_ablations[3].name, sm80_ablations[3].description, ablated_plan<Sm80Ablation::spill>},
};

}  // namespace attest
