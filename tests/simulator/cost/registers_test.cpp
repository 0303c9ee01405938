#include "attest/simulator/registers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "attest/simulator/occupancy.h"
#include "plan_of.h"

namespace attest {
namespace {

// By hand: 65536 / 384 = 168 at launch, (3 * 168 - 24) / 2 for a consumer; 65536 / 512 = 128, (4 * 128 - 24) / 3 and
// what is left of it for the producer.
TEST(Registers, ProducersGiveTheirsToConsumers) {
  const DeviceSpec h100 = load_device("h100");
  KernelPlan plan = plan_of(128, 128, 128, 8, 2);
  plan.matrix_kind = MatrixKind::wgmma, plan.copy_kind = CopyKind::tma, plan.producer_warps = 4;
  const RegisterEstimate two = estimate_registers(plan, h100);
  EXPECT_EQ(two.limit, 240);
  EXPECT_EQ(two.registers_per_thread, 168);
  EXPECT_EQ(two.output, 64);
  EXPECT_EQ(two.scores, 64);
  EXPECT_EQ(two.query, 0);
  EXPECT_EQ(two.probabilities, 32);
  EXPECT_EQ(two.stack_words, 0);
  plan.tile_m = 192, plan.num_warps = 12;
  EXPECT_EQ(estimate_registers(plan, h100).limit, 160);
  EXPECT_GT(estimate_registers(plan, h100).stack_words, 0);  // 64 + 64 + 32 + 4 do not go into 160
  plan.p_in_smem = true;
  EXPECT_EQ(estimate_registers(plan, h100).probabilities, 0);
  EXPECT_EQ(estimate_registers(plan, h100).stack_words, 0);
}

// FlashAttention 3's launches show 168 and 128, and its consumers spill nothing.
TEST(Registers, Fa3sComeOutWithoutBeingKnown) {
  const DeviceSpec h200 = load_device("h200");
  for (const std::int64_t headdim : {64, 128}) {
    for (const Causal causal : {Causal::none, Causal::bottom_right}) {
      const Problem p{1, 16, 16, 4096, 4096, headdim, headdim, Dtype::bf16, {}, causal, -1, -1};
      KernelPlan plan = fa3_plan(p, 232448);
      EXPECT_EQ(plan.known_registers, headdim == 64 ? 128 : 168);
      plan.known_registers = 0;
      const RegisterEstimate e = estimate_registers(plan, h200);
      EXPECT_EQ(e.registers_per_thread, headdim == 64 ? 128 : 168);
      EXPECT_EQ(e.spill_words, 0);
      EXPECT_EQ(e.producer_limit, headdim == 64 ? 32 : 24);
    }
  }
}

// Both sides of what ptxas takes: 128 columns of O and 4 words of P go into 168 registers and not into 128.
TEST(Registers, OneWgmmaMustFitTheLaunch) {
  const DeviceSpec h100 = load_device("h100");
  KernelPlan plan = plan_of(256, 128, 64, 8, 1);
  plan.matrix_kind = MatrixKind::wgmma, plan.copy_kind = CopyKind::tma, plan.producer_warps = 4;
  EXPECT_NO_THROW(estimate_registers(plan, h100));
  plan.tile_m = 192, plan.num_warps = 12;
  try {
    estimate_registers(plan, h100);
    FAIL() << "158 words of operands went into 128 registers";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("tile_m"));
    EXPECT_THAT(error.what(), testing::HasSubstr("128 registers each, and one wgmma of 256 columns needs 158"));
  }
  plan.known_registers = 128;  // somebody compiled it
  EXPECT_NO_THROW(estimate_registers(plan, h100));
}

TEST(Registers, CtasThatShareAnSmLowerTheLimit) {
  const DeviceSpec a100 = load_device("a100");
  const KernelPlan plan = plan_of(96, 128, 64, 4);
  EXPECT_EQ(estimate_registers(plan, a100).limit, 255);
  EXPECT_EQ(estimate_registers(plan, a100, {2}).limit, 255);
  EXPECT_EQ(estimate_registers(plan, a100, {3}).limit, 168);
  EXPECT_EQ(estimate_registers(plan, a100, {4}).limit, 128);
  EXPECT_EQ(estimate_registers(plan, a100, {1}).stack_words, 0);
  EXPECT_GT(estimate_registers(plan, a100, {3}).stack_words, 0);
}

// On both sides of the edge: a plan spills from the first word that its launch does not leave it.
TEST(Registers, SpillBeginsAtTheLeast) {
  DeviceSpec device = load_device("a100");
  const KernelPlan plan = plan_of(128, 128, 128, 8);
  const RegisterEstimate roomy = estimate_registers(plan, device);
  EXPECT_EQ(roomy.output, 64);
  EXPECT_EQ(roomy.scores, 64);
  EXPECT_EQ(roomy.query, 8);
  EXPECT_EQ(roomy.rows, 4);
  device.registers_per_thread_max = roomy.least;
  EXPECT_EQ(estimate_registers(plan, device).stack_words, 0);
  EXPECT_EQ(estimate_registers(plan, device).registers_per_thread, roomy.least);
  device.registers_per_thread_max = roomy.least - 1;
  EXPECT_EQ(estimate_registers(plan, device).stack_words, 1);
  EXPECT_EQ(estimate_registers(plan, device).parked_words, 1);
  EXPECT_EQ(estimate_registers(plan, device).spill_words, 0);
  device.registers_per_thread_max = roomy.least - plan.loop_words - 3;  // the loop's own words and three of the tile's
  EXPECT_EQ(estimate_registers(plan, device).parked_words, plan.loop_words);
  EXPECT_GE(estimate_registers(plan, device).spill_words, 6);
}

// What a kernel's code holds beside its tiles, word by word; a call counts only where one slot is refilled under S.
TEST(Registers, WordsOfTheCodeCount) {
  const DeviceSpec a100 = load_device("a100");
  KernelPlan plan = plan_of(128, 128, 64, 4);
  const auto least = [&] { return estimate_registers(plan, a100).least; };
  const int streamed = least();
  plan.fragment_words += 32;
  EXPECT_EQ(least(), streamed + 32);
  plan.fragment_words -= 32;
  plan.loop_words_sm90 = 13;
  EXPECT_EQ(least(), streamed);
  EXPECT_EQ(estimate_registers(plan, load_device("h100")).least, streamed + 13);
  plan.loop_words += 5;
  EXPECT_EQ(least(), streamed + 5);
  plan.refill_call_words = 40;  // Q's 16 words are dead by then, and the 4 of K's
  EXPECT_EQ(least(), streamed + 5 + 40 - 16 - 4);
  plan.stages = 2;
  EXPECT_EQ(least(), streamed + 5);
}

// What warps with wgmma keep of a query tile goes first, once; only what lacks beyond it is stored in each key tile.
TEST(Registers, WordsOfAQueryTileAreParkedFirst) {
  const DeviceSpec h200 = load_device("h200");
  const Problem p{1, 16, 16, 4096, 4096, 64, 64, Dtype::bf16, {}, Causal::none, -1, -1};
  KernelPlan plan = fa3_plan(p, 232448);
  plan.known_registers = 0, plan.tile_words = 0;
  const int slack = estimate_registers(plan, h200).limit - estimate_registers(plan, h200).least;
  ASSERT_GE(slack, 0);
  plan.tile_words = slack;
  EXPECT_EQ(estimate_registers(plan, h200).stack_words, 0);
  plan.tile_words = slack + 3;
  EXPECT_EQ(estimate_registers(plan, h200).parked_words, 3);
  EXPECT_EQ(estimate_registers(plan, h200).spill_words, 0);
  plan.headdim = plan.headdim_v = plan.padded_headdim = plan.padded_headdim_v = 80;
  EXPECT_EQ(estimate_registers(plan, h200).parked_words, slack + 3);
  EXPECT_GT(estimate_registers(plan, h200).spill_words, 0);
}

// FlashAttention 3's tiles in pairs keep two words more than its producers have; those handed out keep fewer.
TEST(Registers, AProducersWordsThatDoNotFitAreItsStack) {
  const DeviceSpec h200 = load_device("h200");
  Problem p{1, 16, 16, 4096, 4096, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
  EXPECT_EQ(estimate_registers(fa3_plan(p, 232448), h200).producer_stack_words, 4);
  p.seqlen_q = 128;
  EXPECT_EQ(estimate_registers(fa3_plan(p, 232448), h200).producer_stack_words, 2);
  p.causal = Causal::bottom_right;
  EXPECT_EQ(estimate_registers(fa3_plan(p, 232448), h200).producer_stack_words, 0);
  KernelPlan plan = fa3_plan(p, 232448);
  plan.known_registers = 0, plan.copy_kind = CopyKind::cp_async;
  const RegisterEstimate by_address = estimate_registers(plan, h200);
  EXPECT_EQ(by_address.limit, 232);
  EXPECT_EQ(by_address.producer_limit, 40);
}

TEST(Registers, ThePlansOwnDataWins) {
  KernelPlan plan = plan_of(128, 128, 64, 4);
  plan.known_registers = 168;
  plan.spill_words_per_key_tile = 3;
  const RegisterEstimate e = estimate_registers(plan, load_device("h100"));
  EXPECT_TRUE(e.known);
  EXPECT_EQ(e.registers_per_thread, 168);
  EXPECT_EQ(e.spill_words, 3);
}

TEST(Registers, AManyThreadLaunchLowersTheLimit) {
  const RegisterEstimate e = estimate_registers(plan_of(128, 512, 128, 16), load_device("h100"));
  EXPECT_EQ(e.registers_per_thread, 128);
  EXPECT_GT(e.spill_words, 0);
}

TEST(Registers, AnSmWithTooFewIsRefused) {
  DeviceSpec device = load_device("h100");
  device.registers_per_sm = 1024;
  try {
    estimate_registers(plan_of(128, 128, 64, 8), device);
    FAIL() << "1024 registers over 256 threads were accepted";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("registers_per_sm"));
    EXPECT_THAT(error.what(), testing::HasSubstr("1024"));
    EXPECT_THAT(error.what(), testing::HasSubstr("fewer than 8"));
  }
}

// Nine warps of 7168 registers are fewer than 65536 in all, but three of them are more than a scheduler's share.
TEST(Occupancy, ARefusalNamesTheSharesOfSchedulers) {
  KernelPlan plan;
  plan.num_warps = 8;
  plan.producer_warps = 1;
  try {
    occupancy(plan, 224, load_device("h200"));
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("9 warps of 7168 registers, more than the 8 that"));
  }
}

}  // namespace
}  // namespace attest
