// FlashAttention 2's plans with what the compiler made of its kernels: simulator/measured/registers_fa2_torch.csv and
// unseen_copies_fa2.csv.
#include "compiled_fa2.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "attest/simulator/case_counts.h"
#include "attest/simulator/report.h"
#include "compiled_plans.h"
#include "compiled_registers.h"
#include "measured_rows.h"

namespace attest {
namespace {

// FlashAttention 2's kernels as a wheel of PyTorch has them, by what their code hangs on: whole tiles, whole rows, the
// mask; of an architecture's newest code that a device runs, or estimated where there is none.
TEST(CompiledFa2, HasItsOwnWords) {
  Case causal = d128(), ragged = d128(), narrow = d128(), window = d128(), lengths = d128(), pages = d128();
  causal.problem.causal = Causal::bottom_right;
  ragged.problem.causal = Causal::bottom_right, ragged.problem.seqlen_q = ragged.problem.seqlen_k = 832;
  narrow.problem.headdim = narrow.problem.headdim_v = 112;
  window.problem.window_left = 255, window.problem.window_right = 0;
  lengths.problem.batch = 2, lengths.problem.varlen_q = lengths.problem.varlen_k = {2048, 2048};
  pages.layout.page_size = 64;
  const auto words = [&](const Case& c, const char* device = "h200") {
    const KernelPlan plan = plan_on(device, "fa2", c);
    return std::array{plan.known_registers, plan.spill_words_per_key_tile, plan.spill_words_per_cta};
  };
  EXPECT_EQ(words(d128()), (std::array{255, 14, 19}));
  EXPECT_EQ(words(d128(), "h100"), words(d128()));
  EXPECT_EQ(words(causal), (std::array{255, 14, 18}));
  EXPECT_EQ(words(ragged), (std::array{255, 8, 83}));
  EXPECT_EQ(words(narrow), (std::array{255, 18, 16}));
  EXPECT_EQ(words(window), (std::array{255, 32, 23}));
  EXPECT_EQ(words(lengths), (std::array{255, 8, 7}));
  EXPECT_NE(words(d128(), "a100"), words(d128()));
  for (const auto& [c, device] : {std::pair{pages, "h200"}, {d128(), "mtt-s4000"}})
    EXPECT_EQ(words(c, device)[0], 0) << device;
}

// A mask that is said otherwise is the same kernel's, and a field that is set to what it is changes nothing.
TEST(CompiledFa2, ItsKernelsHangOnWhatIsLaunched) {
  const auto stored = [](const char* device, const Case& c, const char* name = "fa2") {
    const DeviceSpec spec = load_device(device);
    return simulate(c, plan_named("fa2", c, spec), spec, name).spill_store_bytes;
  };
  Case none = d128(), causal = d128(), window = d128(), wide = d128(), one = d128(), last = d128();
  causal.problem.causal = Causal::bottom_right;
  window.problem.window_right = 0;
  wide.problem.causal = Causal::bottom_right, wide.problem.window_left = 2048;
  EXPECT_EQ(stored("h200", window), stored("h200", causal));
  EXPECT_EQ(stored("h200", wide), stored("h200", causal));
  wide.problem.causal = Causal::none, wide.problem.window_right = 4096;
  EXPECT_EQ(stored("h200", wide), stored("h200", none));
  EXPECT_EQ(plan_on("rtx4090", "fa2", window).tile_m, 64);
  one.problem.seqlen_q = last.problem.seqlen_q = 1, last.problem.causal = Causal::bottom_right;
  EXPECT_EQ(stored("h200", one), stored("h200", last));
  EXPECT_EQ(stored("h200", causal, "mine"), stored("h200", causal)) << "whatever the plan is called";
}

// Key tiles that have code of their own are those that a plan masks, one where there is no mask; windows have five of
// 32 keys.
TEST(CompiledFa2, ItsPlansMaskAsManyTilesAsItsCodeHasApart) {
  int kernels = 0;
  for (const char* device : {"a100", "h100", "b200", "rtx3090", "rtx4090"}) {
    const DeviceSpec spec = load_device(device);
    for (const std::int64_t headdim : {32, 40, 64, 80, 96, 112, 128, 192, 256})
      for (const std::int64_t seqlen : {2048, 2000})
        for (const int mask : {0, 1, 2}) {
          Case c = d128();
          c.problem.headdim = c.problem.headdim_v = headdim;
          c.problem.seqlen_q = c.problem.seqlen_k = seqlen;
          if (mask == 1) c.problem.causal = Causal::bottom_right;
          if (mask == 2) c.problem.window_left = c.problem.window_right = 100;
          const KernelPlan plan = plan_named("fa2", c, spec);
          const std::optional<PlaceCounts> code = compiled_instructions(plan, c, spec);
          ASSERT_TRUE(code.has_value()) << device << command_line(c);
          EXPECT_EQ(std::ssize(code->tiles), std::max(1, plan.masked_steps)) << device << command_line(c);
          EXPECT_GE(plan.spill_words_entering, 0) << device << command_line(c);
          EXPECT_LE(plan.spill_words_entering, plan.spill_words_per_cta) << device << command_line(c);
          ++kernels;
        }
  }
  EXPECT_EQ(kernels, 270);
}

// What its warps execute of that code, beside the counter: short calls and long ones.
TEST(CompiledFa2, ExecutesAsCounted) {
  const DeviceSpec device = load_device("h100");
  int calls = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H100 "/fa2_code.csv")) {
    const auto number = [&](const char* column) { return std::stoll(row.at(column)); };
    Case c;
    Problem& p = c.problem;
    p.batch = number("batch"), p.nheads = number("nheads"), p.nheads_k = number("nheads_k");
    p.seqlen_q = p.seqlen_k = number("seqlen"), p.headdim = p.headdim_v = number("headdim");
    p.dtype = Dtype::bf16;
    if (number("causal") != 0) p.causal = Causal::bottom_right;
    const KernelPlan plan = plan_named("fa2", c, device);
    const double instructions = of_all_ctas(compiled_instructions(plan, c, device).value(), count_key_runs(c, plan),
                                            count_case(c, plan).key_tiles);
    // of few key tiles what stands around them is most, and hangs on which rows and columns there are
    EXPECT_NEAR(plan.num_warps * instructions / std::stod(row.at("inst_executed")), 1, p.seqlen_k < 380 ? 0.04 : 0.015)
        << command_line(c);
    ++calls;
  }
  EXPECT_EQ(calls, 20);
}

// 832 keys under a mask: seven query tiles of 2, 4, 6, 8, 10, 12 and 13 key tiles store 17, 39 and 98 words in their
// first three, 2 as they enter the loop and 8 in each of its turns (an H200's counter has 41,680,896 bytes).
TEST(CompiledFa2, StoresByKeyTile) {
  const DeviceSpec device = load_device("h200");
  Case c = d128();
  c.problem.batch = 2, c.problem.nheads = c.problem.nheads_k = 32;
  c.problem.seqlen_q = c.problem.seqlen_k = 832, c.problem.causal = Causal::bottom_right;
  const SimulationReport r = simulate(c, plan_named("fa2", c, device), device, "fa2");
  const int words = 7 * (17 + 39) + 6 * (98 + 2) + 8 * (1 + 3 + 5 + 7 + 9 + 10);
  EXPECT_EQ(r.spill_store_bytes, 64.0 * 128 * 4 * words);
  const std::optional<PlaceCounts> code = compiled_instructions(r.plan, c, device);
  ASSERT_TRUE(code.has_value());
  const KeyRuns runs = count_key_runs(c, r.plan);
  EXPECT_EQ(runs.longer, (std::array<std::int64_t, 6>{7 * 64, 7 * 64, 6 * 64, 6 * 64, 5 * 64, 5 * 64}));
  EXPECT_EQ(of_all_ctas({.tiles = {5, 3}}, runs, 55 * 64), 7 * 64 * 8);
}

// FlashAttention 2's copies of a turn that P0 stops: of 224 columns the last 32 of 256, which counters see read, four
// wavefronts more; of 40 the last 24 of 64, whose lanes' addresses are whatever their registers hold, a wavefront each.
// Ahead of its loop none is. With zeros that are stores of their own, which are seen as they are. Of
// 40 columns 20 lanes read, 3 ideal wavefronts, where counters see 32, 4.
TEST(CompiledFa2, CountersSeeOtherCopies) {
  const auto unseen_a_tile = [](int headdim) {
    Case c = d128();
    c.problem.nheads = c.problem.nheads_k = 4;
    c.problem.headdim = c.problem.headdim_v = headdim;
    const KernelPlan plan = plan_on("h200", "fa2", c);
    const UnseenWavefronts unseen = unseen_wavefronts(plan, "fa2", c, load_device("h200"));
    // V in each turn of the loop, and K of the turns behind its first
    const double ctas = 4.0 * 2048 / plan.tile_m, turns = 2048.0 / plan.tile_n - 1, copied = ctas * (turns - 0.5);
    return std::pair(unseen.all / copied, unseen.ideal / copied);
  };
  constexpr double warps = 4, k_and_v = 2;
  EXPECT_EQ(unseen_a_tile(64), std::pair(0.0, 0.0));
  EXPECT_EQ(unseen_a_tile(256), std::pair(0.0, 0.0));
  EXPECT_DOUBLE_EQ(unseen_a_tile(224).first, -warps * k_and_v * 4 * 2);
  EXPECT_DOUBLE_EQ(unseen_a_tile(224).second, -warps * k_and_v * 4 * 2);
  EXPECT_DOUBLE_EQ(unseen_a_tile(40).first, -warps * k_and_v * 8 * 3 * 4);
  EXPECT_DOUBLE_EQ(unseen_a_tile(40).second, -warps * k_and_v * 8);
}

// A turn's 1871 instructions where columns are tested, 1671 where they are not.
TEST(CompiledFa2, TestsOfColumnsTakeInstructions) {
  const auto more = [](int headdim, const char* name = "fa2") {
    Case c = d128();
    c.problem.headdim = c.problem.headdim_v = headdim;
    return compiled_column_instructions(plan_on("h200", name, c), c, load_device("h200"));
  };
  EXPECT_EQ(more(40), 200);
  EXPECT_EQ(more(64), 0);
  EXPECT_EQ(more(120), 1373 - 1192);
  EXPECT_EQ(more(120, "attest"), 0);
}

}  // namespace
}  // namespace attest
