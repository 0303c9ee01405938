// Plans by name with what the compiler made of their kernels: simulator/measured/registers_gpu_sm80.csv.
#include "compiled_registers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "attest/plan/ablation_plans.h"
#include "attest/plan/catalog.h"
#include "attest/problem/file.h"
#include "attest/simulator/case_counts.h"
#include "attest/simulator/report.h"
#include "compiled_plans.h"
#include "measured_rows.h"

namespace attest {
namespace {

TEST(CompiledRegisters, AnAblationHasItsOwnWords) {
  const KernelPlan whole = plan_on("h200", "attest", d128()), copies = plan_on("h200", "sm80-sync-copies", d128());
  EXPECT_EQ(whole.spill_words_per_key_tile, 0);
  EXPECT_GT(whole.spill_words_per_cta, 0);
  EXPECT_EQ(copies.known_registers, 255);
  EXPECT_NE(copies.spill_words_per_cta, whole.spill_words_per_cta);
}

// The plan alone, for devices that no code was compiled for, has the words of sm_90's.
TEST(CompiledRegisters, SpillOfThePlanIsThatOfTheFile) {
  const KernelPlan compiled = plan_on("h200", "sm80-spill", d128());
  const KernelPlan alone = ablated_plan<Sm80Ablation::spill>(d128(), {});
  EXPECT_EQ(compiled.spill_words_per_key_tile, alone.spill_words_per_key_tile);
  EXPECT_EQ(compiled.known_registers, alone.known_registers);
  EXPECT_GT(compiled.spill_words_per_cta, 0);
  EXPECT_EQ(plan_on("b200", "sm80-spill", d128()).spill_words_per_cta, 0);
}

TEST(CompiledRegisters, WordsOfABranchAreThoseOfCasesThatTakeIt) {
  Case general = d128(), alibi = d128();
  general.problem.softcap = 30, alibi.problem.alibi = true;
  const KernelPlan without = plan_on("h200", "attest", general), with = plan_on("h200", "attest", alibi);
  EXPECT_GT(without.spill_words_per_key_tile, 0);
  EXPECT_GT(with.spill_words_per_key_tile, without.spill_words_per_key_tile);
  EXPECT_EQ(with.spill_words_per_cta, without.spill_words_per_cta);
}

// A causal call's loads, to the byte: 9 words in each whole key tile, 13 in a masked one and 4 a CTA, as the panel has
// them. A plan that is somebody else's loads what it stores.
TEST(CompiledRegisters, LoadsAreThoseOfTheKernelThatStoresSo) {
  const DeviceSpec device = load_device("h200");
  Case c = d128();
  c.problem.batch = 4, c.problem.nheads = c.problem.nheads_k = 16, c.problem.seqlen_q = c.problem.seqlen_k = 4096;
  c.problem.causal = Causal::bottom_right;
  KernelPlan plan = plan_named("attest", c, device);
  EXPECT_EQ(simulate(c, plan, device).spill_load_bytes, 324009984);
  EXPECT_EQ(simulate(c, plan, device, "attest").spill_load_bytes, 324009984);
  plan.spill_words_per_cta = 5, plan.spill_words_per_key_tile = 2;
  const SimulationReport other = simulate(c, plan, device, "attest");
  EXPECT_EQ(other.spill_load_bytes, other.spill_store_bytes);
  plan.known_registers = plan.spill_words_per_cta = plan.spill_words_per_key_tile = 0;
  const SimulationReport estimated = simulate(c, plan, device, "attest");
  EXPECT_GT(estimated.registers.parked_words, 0);
  EXPECT_EQ(estimated.registers.loaded.masked, estimated.registers.parked_words + estimated.registers.spill_words);
}

// What the panel's calls stored and one of them loaded, to the word of a warp: without the swizzle a word for each run
// of key tiles and one for the whole tiles, which the first query tile of a causal head has none of; CTAs without rows
// store four before they end.
TEST(CompiledRegisters, StoresAreThoseOfTheWaysThroughTheKernel) {
  const DeviceSpec device = load_device("h200");
  const auto words_of_warp = [&](const char* name, const Case& c) {
    const SimulationReport r = simulate(c, plan_named(name, c, device), device, name);
    return r.spill_store_bytes / 128.0 / static_cast<double>(r.walk.ctas * r.plan.num_warps);
  };
  Case c = d128(), narrow = d128(), general = d128(), lengths = d128();
  c.problem.seqlen_q = c.problem.seqlen_k = 512;
  EXPECT_EQ(words_of_warp("sm80-no-swizzle", c), 24);
  const SimulationReport r = simulate(c, plan_named("sm80-no-swizzle", c, device), device, "sm80-no-swizzle");
  EXPECT_EQ(r.spill_load_bytes, 82 * 128.0 * static_cast<double>(r.walk.ctas * r.plan.num_warps));
  c.problem.causal = Causal::bottom_right;
  EXPECT_EQ(words_of_warp("sm80-no-swizzle", c), 23.5);
  narrow.problem.headdim = narrow.problem.headdim_v = 72;
  EXPECT_EQ(words_of_warp("attest", narrow), 10);
  general.problem.softcap = 30;
  EXPECT_EQ(words_of_warp("attest", general), 170);
  lengths.problem.batch = 2;
  lengths.problem.varlen_q = lengths.problem.varlen_k = {2048, 512};
  EXPECT_EQ(words_of_warp("attest", lengths), (20 * 17 + 12 * 4) / 32.0);
}

// The trace of the kernel that spills has the words that its row counts; what misses L1 is read by the SM.
TEST(CompiledRegisters, TracesHaveTheWordsOfTheirKernels) {
  const Case c = d128();
  for (const char* name : {"h200", "a100"}) {
    const DeviceSpec device = load_device(name);
    const KernelPlan plan = plan_named("sm80-spill", c, device);
    const SpillTraces traces = compiled_traces(plan, "sm80-spill", c, device);
    const PlaceCounts loads = compiled_spill(plan, "sm80-spill", c, device).value().loaded;
    const auto stored = [](const SpillTrace& trace) {
      return std::count_if(trace.accesses.begin(), trace.accesses.end(),
                           [](const SpillAccess& a) { return a.kind == SpillAccess::Kind::store; });
    };
    EXPECT_EQ(stored(traces.whole), plan.spill_words_per_key_tile);
    EXPECT_EQ(std::ssize(traces.whole.accesses) - stored(traces.whole), loads.whole);
    EXPECT_EQ(std::ssize(traces.masked.accesses) - stored(traces.masked), loads.masked);
    EXPECT_TRUE(compiled_traces(plan_named("fa2", c, device), "fa2", c, device).whole.accesses.empty());
    for (const SpillTrace* trace : {&traces.whole, &traces.masked})
      for (const SpillAccess& access : trace->accesses) {
        EXPECT_LT(access.at, trace->cycles);
        if (access.kind == SpillAccess::Kind::store) continue;
        EXPECT_GE(access.waited, access.at + 29);  // where it hits
        EXPECT_LT(access.waited, access.at + trace->cycles);
      }
  }
}

// As many loads and stores in a key tile as the counts have, of the branches that a case takes, but for a load under a
// predicate.
TEST(CompiledRegisters, TracesGoThroughTheBranchesOfACase) {
  Case window = d128(), alibi = d128(), gap = d128();
  window.problem.window_left = 511;
  alibi.problem.alibi = true;
  gap.layout.row_gap = 4;
  for (const char* name : {"h200", "a100"}) {
    const DeviceSpec device = load_device(name);
    for (const Case& c : {d128(), window, alibi, gap}) {
      const KernelPlan plan = plan_on(name, "attest", c);
      const SpillTraces traces = compiled_traces(plan, "attest", c, device);
      const CompiledSpill spill = compiled_spill(plan, "attest", c, device).value();
      const auto count = [](const SpillTrace& trace, bool stores) {
        return std::ranges::count_if(trace.accesses, [&](const SpillAccess& a) {
          return a.kind != SpillAccess::Kind::call && (a.kind == SpillAccess::Kind::store) == stores;
        });
      };
      SCOPED_TRACE(command_line(c));
      EXPECT_EQ(count(traces.masked, true), spill.stored.masked);
      EXPECT_NEAR(count(traces.masked, false), spill.loaded.masked, 1);
      EXPECT_EQ(count(traces.whole, true), spill.stored.whole);
      EXPECT_NEAR(count(traces.whole, false), spill.loaded.whole, 1);
      EXPECT_EQ(std::ranges::count(traces.whole.accesses, SpillAccess::Kind::call, &SpillAccess::kind),
                c.layout.row_gap != 0 ? 2 : 0);
      EXPECT_TRUE(std::ranges::is_sorted(traces.masked.accesses, {}, &SpillAccess::at));
    }
  }
}

// 632 bytes of frame, in which a whole tile's 150 stores have 131 words (spill_traces.csv); one kind has no trace, and
// a general one's 4 words of a tile lie beside what it stores once.
TEST(CompiledRegisters, FramesAreThoseOfMachineCode) {
  const auto frame = [&](const char* device, const char* name, const Case& c) {
    return compiled_frame(plan_on(device, name, c), name, c, load_device(device));
  };
  EXPECT_EQ(frame("h200", "sm80-spill", d128()), (LocalFrame{158, 131}));
  EXPECT_EQ(frame("h200", "attest", d128()), (LocalFrame{18, 0}));
  Case gap = d128();
  gap.layout.row_gap = 4;
  EXPECT_EQ(frame("h200", "attest", gap), (LocalFrame{36, 4}));
  EXPECT_EQ(frame("h200", "fa2", d128()), (LocalFrame{33, 14}));
  EXPECT_EQ(frame("mtt-s4000", "fa2", d128()), std::nullopt);
  // FlashAttention 2's threads without a column of their own do not store 16 words; of 64 columns each has one
  Case narrow = d128();
  narrow.problem.headdim = narrow.problem.headdim_v = 40;
  EXPECT_EQ(frame("h200", "fa2", narrow), (LocalFrame{33, 8, 16}));
  narrow.problem.headdim = narrow.problem.headdim_v = 104;
  EXPECT_EQ(frame("h200", "fa2", narrow), (LocalFrame{34, 18, 0}));
}

// Two CTAs an SM on an H200, whose frames are 2.5 times L1; one on an A100, whose frame fits.
// Two CTAs of an SM, and one in the L1 of two.
TEST(CompiledRegisters, LoadsThatMissL1AreReadByTheSm) {
  struct Expected {
    const char* device;
    std::int64_t batch;
    double missing;
  };
  for (const auto& [name, batch, expected] : {Expected{"h200", 8, 0.67}, {"h200", 1, 0.26}, {"a100", 8, 0}}) {
    const DeviceSpec device = load_device(name);
    Case c = d128();
    c.problem.batch = batch;
    const SimulationReport spill = simulate(c, plan_named("sm80-spill", c, device), device, "sm80-spill"),
                           fits = simulate(c, plan_named("attest", c, device), device, "attest");
    const double missing = (spill.sm_read_bytes - fits.sm_read_bytes) / spill.spill_load_bytes;
    EXPECT_NEAR(missing, expected, 0.03) << name << batch;
  }
}

TEST(CompiledRegisters, OtherKernelsAreLeftAlone) {
  Case wide = d128();
  wide.problem.dtype = Dtype::fp32;
  EXPECT_EQ(plan_on("h200", "attest", wide).known_registers, 0);
  EXPECT_EQ(plan_on("h200", "fa2", wide).known_registers, 0);
  EXPECT_EQ(plan_on("h200", "fa3", d128()), with_layout(fa3_plan(d128().problem, 232448), d128()));
}

// At headdim 192 V's copies of whole tiles stand under P0, a wavefront for each 128 bytes.
TEST(CompiledRegisters, CountersTakeP0ForFalse) {
  Case c = d128();
  c.problem.headdim = c.problem.headdim_v = 192;
  const auto unseen = [](const Case& of, const char* device = "h200") {
    return unseen_wavefronts(plan_on(device, "attest", of), "attest", of, load_device(device));
  };
  const double ctas = 4 * 2048 / 64, rows = 2048, whole = ctas * rows * 384 / 128;
  EXPECT_EQ(unseen(c).all, whole);
  EXPECT_EQ(unseen(c).ideal, whole);
  EXPECT_EQ(unseen(c, "a100").all, 0);
  // 64 of a row's last 128 bytes: with all of a store's wavefronts beside what is read. Before the loops one copy in 12
  // of Q and of K, 64 rows each, is seen as zeros alone.
  Case zeros = c;
  zeros.problem.headdim = zeros.problem.headdim_v = 160;
  const double first_rows = 2 * 64 / 12.0;
  EXPECT_NEAR(unseen(zeros).ideal, ctas * (rows * 3.5 + first_rows * 0.5), 1);
  EXPECT_NEAR(unseen(zeros).all, ctas * (rows * (4 + 1) + first_rows * 2), 1);
  Case causal = c;
  causal.problem.causal = Causal::bottom_right;
  // of n(n+1)/2 tiles n are masked
  EXPECT_NEAR(unseen(causal).all, whole * (31 / 2.0) / 32, 1);
  EXPECT_EQ(unseen(d128()).all, 0);
  // K's copies read unless P0, and so are seen to read the last 16 of 256 bytes of a row too, but for those of the
  // first tile: 10.5 wavefronts in place of 15 (of four warps, 8 copies each), as a profile has them, and of V's first
  // eight two copies 4.
  Case narrow = d128();
  narrow.problem.headdim = narrow.problem.headdim_v = 120;
  narrow.problem.nheads = narrow.problem.nheads_k = 16;
  const double of_each = 4.0 / 64, tiles_of_keys = 2048 / 64;
  EXPECT_NEAR(unseen(narrow).all / (16 * 2048 / 128.0), 32 * (tiles_of_keys - 1) * (15 - 10.5) + 8 * (15 - 4), of_each);

  // Decoding: 30 of 32 copies of K and of V but for the first tile's, which are before the loops, and one in eight of
  // Q.
  Case decode = d128();
  decode.problem.seqlen_q = 1;
  const double tiles = 2048 / 64, seen_in_full = 1, of_q = 4.0 / 8;
  EXPECT_DOUBLE_EQ(unseen(decode).ideal, 4 * (2 * (tiles - seen_in_full) * 64 * 256 / 128 * 30 / 32 + of_q));
  decode.layout.page_size = 256;
  EXPECT_EQ(unseen(decode).all, 0);

  // Narrow ones are a function's, none of whose are under P0.
  Case by_call = d128();
  by_call.problem.headdim = by_call.problem.headdim_v = 100;
  EXPECT_EQ(count_case(by_call, plan_on("h200", "attest", by_call)).copied, (std::array<CopiedWavefronts, 4>{}));
}

}  // namespace
}  // namespace attest
