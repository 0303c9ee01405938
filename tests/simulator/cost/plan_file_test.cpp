#include "attest/simulator/plan_file.h"

#include <gtest/gtest.h>

#include "attest/plan/catalog.h"
#include "attest/simulator/report.h"
#include "device_features.h"
#include "plan_texts.h"

namespace attest {
namespace {

// ---- how many members an aggregate has: as many as it can be initialised with
struct Anything {
  template <class T>
  constexpr operator T() const;  // NOLINT(google-explicit-constructor): of whatever type the member is
};
template <class T, class... Members>
constexpr std::size_t num_members() {
  if constexpr (requires { T{Members{}..., Anything{}}; })
    return num_members<T, Members..., Anything>();
  else
    return sizeof...(Members);
}

TEST(PlanFile, EveryFieldOfAPlanIsInTheTable) {
  constexpr std::size_t from_case = 5;  // softcap, alibi, bias, sink, num_splits
  EXPECT_EQ(plan_fields().size() + from_case, num_members<KernelPlan>());
}

TEST(PlanFile, WhatIsWrittenIsRead) {
  for (const char* device : {"a100", "h200", "rtx4090"})
    for (const NamedPlan& named : named_plans)
      for (const int headdim : {64, 100, 128, 256}) {
        Case c = d128();
        c.problem.headdim = c.problem.headdim_v = headdim;
        const DescribedPlan plan{std::string(named.name), plan_named(named.name, c, load_device(device))};
        if (plan_fault(plan.plan, c, load_device(device))) continue;
        const DescribedPlan again = read(to_json(plan), c, device);
        EXPECT_EQ(again.name, plan.name);
        EXPECT_EQ(again.plan, plan.plan) << named.name << " " << headdim;
      }
}

// Each field, set to something else than its default, changes itself and comes back.
TEST(PlanFile, EveryFieldIsReadAndWritten) {
  KernelPlan other{.headdim = 96,
                   .headdim_v = 80,
                   .element_bytes = 4,
                   .tile_m = 128,
                   .tile_n = 32,
                   .num_warps = 8,
                   .producer_warps = 4,
                   .stages = 2,
                   .merged_wait = true,
                   .q_in_registers = true,
                   .lazy_rescale = true,
                   .swizzled = false,
                   .pad_chunks = 1};
  const Json json = to_json(DescribedPlan{"x", other});
  for (const PlanField& field : plan_fields()) EXPECT_EQ(json.at(std::string(field.name)), plan_value(other, field));
  for (const PlanField& field : plan_fields()) {
    KernelPlan plan;
    std::visit([&](auto member) { plan.*member = static_cast<std::decay_t<decltype(plan.*member)>>(1); }, field.member);
    const Json value = plan_value(plan, field);
    if (const auto words = plan_words(field); !words.empty()) {
      EXPECT_EQ(value, words[1]) << field.name;
    } else {
      EXPECT_EQ(value, value.is_boolean() ? Json(true) : Json(1)) << field.name;
    }
    EXPECT_FALSE(field.doc.empty());
  }
}

TEST(PlanFile, DefaultsComeFromTheCaseAndItsLayout) {
  Case c = d128();
  c.problem.dtype = Dtype::fp32;
  c.layout.base_offset = 1;
  const KernelPlan plan = read(plan_with({{"tile_m", 64}, {"tile_n", 32}}), c).plan;
  EXPECT_EQ(plan.headdim, 128);
  EXPECT_EQ(plan.headdim_v, 128);
  EXPECT_EQ(plan.element_bytes, 4);
  EXPECT_EQ(plan.copy_bytes_k, 4);
  EXPECT_EQ(plan.tile_n, 32);
  EXPECT_EQ(plan.stages, KernelPlan{}.stages);
  EXPECT_EQ(read(plan_with({})).name, "my");
}

TEST(PlanFile, ABaseGivesWhatIsLeftOutAndForgetsItsRegistersWhenRecompiled) {
  const KernelPlan base = plan_named("fa2", d128(), load_device("h200"));
  ASSERT_EQ(base.known_registers, 255);
  EXPECT_EQ(read(plan_with({{"base", "fa2"}})).plan, base);
  const KernelPlan placed = read(plan_with({{"base", "fa2"}, {"swizzled", false}})).plan;
  EXPECT_EQ(placed.known_registers, 255);
  EXPECT_FALSE(placed.swizzled);
  const KernelPlan other = read(plan_with({{"base", "fa2"}, {"tile_n", 32}})).plan;
  EXPECT_EQ(other.tile_n, 32);
  EXPECT_EQ(other.tile_m, base.tile_m);
  EXPECT_EQ(other.known_registers + other.spill_words_per_key_tile + other.spill_words_per_cta, 0);
  const KernelPlan known = read(plan_with({{"base", "fa2"}, {"tile_n", 32}, {"known_registers", 200}})).plan;
  EXPECT_EQ(known.known_registers, 200);
  ASSERT_NE(plan_named("fa3", d128(), load_device("h200")).softmax_ahead, KernelPlan{}.softmax_ahead);
  EXPECT_EQ(read(plan_with({{"base", "fa3"}, {"tile_n", 128}})).plan.softmax_ahead, KernelPlan{}.softmax_ahead);
}

TEST(PlanFile, AReportIsReadToo) {
  const DeviceSpec device = load_device("h200");
  const SimulationReport r = simulate(d128(), plan_named("fa2", d128(), device), device, "fa2");
  const DescribedPlan plan = plan_from_json_text(to_json(r).dump(), "report.json", d128(), device);
  EXPECT_EQ(plan.plan, r.plan);
  EXPECT_EQ(plan.name, "fa2");
}

TEST(PlanFile, SetChangesAFieldAndSaysSo) {
  const DeviceSpec device = load_device("h200");
  DescribedPlan plan{"fa2", plan_named("fa2", d128(), device)};
  plan.plan.copy_bytes_k = 8;
  set_plan_fields(plan, std::vector<std::string>{"swizzled=false", "copy_kind=synchronous"}, d128(), device);
  EXPECT_FALSE(plan.plan.swizzled);
  EXPECT_EQ(plan.plan.copy_kind, CopyKind::synchronous);
  EXPECT_EQ(plan.plan.known_registers, 0) << "another kernel";
  EXPECT_EQ(plan.plan.copy_bytes_k, 8) << "as it was";
  EXPECT_EQ(plan.name, "fa2 swizzled=false copy_kind=synchronous");
  for (const char* bad : {"", "=", "=3", "tile_m", "tile_m=", "tile_m=x", "tile_m=[64]", "tile_m=1e999", "tile_q=1",
                          "copy_kind=", "tile_m=100", "swizzled=2", "swizzled=False"})
    EXPECT_THROW(set_plan_fields(plan, std::vector<std::string>{bad}, d128(), device), InvalidInput) << bad;
  EXPECT_THROW(set_plan_fields(plan, std::vector<std::string>{"tile_m=64", "tile_m=128"}, d128(), device),
               InvalidInput);
}

}  // namespace
}  // namespace attest
