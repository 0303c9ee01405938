// Plans by name: the kind whose words a case's plan has, and what has no ablation.
#include "attest/plan/catalog.h"

#include <gtest/gtest.h>

#include "attest/plan/ablation_plans.h"

namespace attest {
namespace {

constexpr std::uint32_t smem_bytes = 227 << 10;

Case plain() {
  Case c;
  Problem& p = c.problem;
  p.dtype = Dtype::bf16;
  p.nheads = p.nheads_k = 2;
  p.seqlen_q = p.seqlen_k = 512, p.headdim = p.headdim_v = 128;
  return c;
}

Case paged() {
  Case c = plain();
  c.layout.page_size = 64;
  return c;
}

Case unaligned() {
  Case c = plain();
  c.layout.row_gap = 1;
  return c;
}

TEST(Catalog, APlanHasTheWordsOfTheKindThatRuns) {
  const auto words = [](Sm80Kind kind) { return with_words_of(sm80_plan(Sm80Tile::d128), kind); };
  const KernelPlan fast = words(Sm80Kind::fast), general = words(Sm80Kind::general);
  ASSERT_NE(fast.loop_words, general.loop_words);
  EXPECT_EQ(attest_plan(plain(), smem_bytes).loop_words, fast.loop_words);
  for (const Case& c : {paged(), unaligned()}) {
    const KernelPlan plan = attest_plan(c, smem_bytes);
    EXPECT_EQ(plan.loop_words, general.loop_words);
    EXPECT_EQ(plan.refill_call_words, general.refill_call_words);
  }
}

TEST(Catalog, WordsFollowTheCopiesTheSlotsAndWhatTheScoresTake) {
  const auto words = [](Sm80Tile tile, Sm80Kind kind) { return with_words_of(sm80_plan(tile), kind).loop_words; };
  using enum Sm80Tile;
  using enum Sm80Kind;
  EXPECT_EQ(words(d96, fast), words(d64, fast) + 2);                // three panels of 64 bytes, one of 128
  EXPECT_EQ(words(d256_short, general), words(d256, general) + 6);  // eight panels and two
  KernelPlan two_slots = sm80_plan(d256);
  two_slots.stages = 2;
  EXPECT_GT(with_words_of(two_slots, general).loop_words, words(d256, general));
  // 64 scores with 64 distances: what lanes share goes to uniform registers
  EXPECT_LT(words(d64, general), words(d64, fast));
  EXPECT_EQ(with_words_of(sm80_plan(d64), general).loop_words_sm90, 0);
  KernelPlan narrow = sm80_plan(d64);
  narrow.tile_n = 32;
  EXPECT_GT(with_words_of(narrow, general).loop_words, words(d64, fast));
  KernelPlan odd;  // fewer columns than a granule
  odd.headdim = odd.headdim_v = 3, odd.padded_headdim = odd.padded_headdim_v = 0;
  EXPECT_GT(with_words_of(odd, general).loop_words, 0);
}

TEST(Catalog, AnAblationTakesOneMechanismAway) {
  for (const NamedPlan& named : ablation_plans) {
    const KernelPlan plan = named.make(plain(), {smem_bytes}), whole = attest_plan(plain(), smem_bytes);
    EXPECT_EQ(plan.tile_n, whole.tile_n);
    EXPECT_EQ((plan.swizzled != whole.swizzled) + (plan.copy_kind != whole.copy_kind) +
                  (plan.skips_tiles != whole.skips_tiles) + (plan.known_registers != whole.known_registers),
              1)
        << named.name;
  }
}

TEST(Catalog, WhatHasNoAblationIsRefused) {
  Case narrow = plain(), fp32 = plain(), capped = plain();
  narrow.problem.headdim = narrow.problem.headdim_v = 64;
  fp32.problem.dtype = Dtype::fp32;
  capped.problem.softcap = 30;
  for (const NamedPlan& named : ablation_plans) {
    for (const Case& c : {narrow, fp32, capped, paged(), unaligned()}) {
      EXPECT_FALSE(has_ablations(c));
      EXPECT_TRUE(ablation_fault(c));
      try {
        named.make(c, {smem_bytes});
        ADD_FAILURE() << named.name << " is predicted";
      } catch (const InvalidInput& error) {
        EXPECT_EQ(error.field(), "plan");
        EXPECT_EQ(error.what(), "plan: '" + std::string(named.name) + "' " + std::string(ablation_limit));
      }
    }
  }
}

// The field that is named is at fault: the case has an ablation again once it, and it alone, is as in a plain one.
TEST(Catalog, TheFieldThatKeepsACaseFromItsAblationIsNamed) {
  EXPECT_FALSE(ablation_fault(plain()));
  const auto field = [](auto&& change) {
    Case c = plain();
    change(c);
    EXPECT_FALSE(has_ablations(c));
    const auto fault = ablation_fault(c);
    return fault ? fault->field : "none";
  };
  EXPECT_EQ(field([](Case& c) { c.problem.dtype = Dtype::fp32; }), "dtype");
  EXPECT_EQ(field([](Case& c) { c.problem.headdim = c.problem.headdim_v = 96; }), "headdim");
  EXPECT_EQ(field([](Case& c) { c.problem.headdim = 136; }), "headdim");
  EXPECT_EQ(field([](Case& c) { c.problem.headdim = 100; }), "headdim");
  EXPECT_EQ(field([](Case& c) { c.problem.headdim_v = 136; }), "headdim_v");
  EXPECT_EQ(field([](Case& c) { c.problem.headdim_v = 100; }), "headdim_v");
  EXPECT_EQ(field([](Case& c) { c.problem.seqlen_q = 16; }), "seqlen_q");
  EXPECT_EQ(field([](Case& c) { c.problem.nheads = 16, c.problem.seqlen_q = 15; }), "seqlen_q");
  EXPECT_EQ(field([](Case& c) { c.problem.softcap = 30; }), "softcap");
  EXPECT_EQ(field([](Case& c) { c.problem.alibi = true; }), "alibi");
  EXPECT_EQ(field([](Case& c) { c.problem.bias = Bias::hqk; }), "bias");
  EXPECT_EQ(field([](Case& c) { c.problem.softmax_scale = -1; }), "softmax_scale");
  EXPECT_EQ(field([](Case& c) { c.problem.prefix = 5; }), "prefix");
  EXPECT_EQ(field([](Case& c) { c.problem.documents = {256, 256}; }), "documents");
  EXPECT_EQ(field([](Case& c) { c.layout.page_size = 64; }), "page_size");
  EXPECT_EQ(field([](Case& c) { c.layout.base_offset = 1; }), "base_offset");
  EXPECT_EQ(field([](Case& c) { c.layout.row_gap = 4; }), "layout");
  EXPECT_EQ(field([](Case& c) { c.layout.row_gap = (std::int64_t{1} << 23) - 128; }), "layout");
  Case least = plain();
  least.problem.seqlen_q = 17, least.problem.headdim = 104, least.problem.headdim_v = 8;
  EXPECT_TRUE(has_ablations(least));
  EXPECT_FALSE(ablation_fault(least));
}

}  // namespace
}  // namespace attest
