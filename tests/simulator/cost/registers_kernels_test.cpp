// Registers and spill of kernels that are used, as ptxas compiles them: gpu/sm80's forwards, and FlashAttention's from
// its sources (bench/hardware/registers).
#include <gtest/gtest.h>

#include "attest/plan/catalog.h"
#include "compiled.h"
#include "plan_of.h"

namespace attest {
namespace {

struct Kernel {
  std::string name;
  const char* device;
  Compiled compiled;
};

const char* device_of(int arch) { return arch == 80 ? "a100" : "h100"; }

template <std::size_t columns>
Compiled compiled_as(const KernelPlan& plan, const std::array<int, columns>& x, bool held_back) {
  Compiled row;
  row.plan = plan;
  row.registers = x[columns - 4], row.stack_bytes = x[columns - 3], row.store_bytes = x[columns - 2];
  row.held_back = held_back;
  return row;
}

// The instantiations that the library holds; not its ablations.
std::vector<Kernel> gpu_sm80() {
  std::vector<Kernel> kernels;
  for (const auto& [line, x] : read_csv<7>("registers_gpu_sm80.csv")) {
    if (!line.ends_with(",attest")) continue;
    const auto tile = static_cast<Sm80Tile>(x[1]);
    const auto kind = static_cast<Sm80Kind>(x[2]);
    Kernel& k = kernels.emplace_back();
    k.device = device_of(x[0]);
    k.compiled = compiled_as(with_words_of(sm80_plan(tile), kind), x, false);
    k.compiled.bounds.min_ctas_per_sm = sm80_min_ctas(tile);
    k.name = fmt::format("sm_{} {:>3}/{:<3} {:>3} x {:<3} {}", x[0], k.compiled.plan.headdim, k.compiled.plan.headdim_v,
                         k.compiled.plan.tile_m, k.compiled.plan.tile_n, x[2] == 0 ? "fast" : "general");
  }
  return kernels;
}

// The same code with other tiles; 56 of them were compiled when the mechanisms were chosen.
std::vector<Kernel> gpu_sm80_grid() {
  std::vector<Kernel> kernels;
  for (const auto& [line, x] : read_csv<15>("registers_gpu_sm80_grid.csv")) {
    KernelPlan plan = plan_of(x[2], x[4], x[5], x[6], x[7]);
    plan.headdim_v = x[3], plan.merged_wait = x[8] != 0, plan.q_in_registers = x[9] != 0;
    Kernel& k = kernels.emplace_back();
    k.device = device_of(x[0]);
    k.compiled = compiled_as(with_words_of(plan, static_cast<Sm80Kind>(x[1])), x, kernels.size() > 56);
    k.compiled.bounds.min_ctas_per_sm = x[10];
    k.name = fmt::format("sm_{} {:>3} {:>3} x {:<3} {} warps, {} slots, Q {}, {}", x[0], x[2], x[4], x[5], x[6], x[7],
                         x[9] == 0 ? "read each tile" : "held", x[1] == 0 ? "fast" : "general");
  }
  return kernels;
}

// Those of headdim 32, 64 and 96, 128 by 128 x 32 and 256 by 64 x 64 were looked at when the mechanisms were chosen.
std::vector<Kernel> flash_attention_2() {
  std::vector<Kernel> kernels;
  for (const auto& [line, x] : read_csv<15>("registers_fa2.csv")) {
    Fa2Features f;
    f.causal = x[5] != 0, f.local = x[6] != 0, f.alibi = x[7] != 0, f.softcap = x[10] != 0;
    f.whole_tiles = x[8] != 0, f.whole_rows = x[9] != 0;
    const KernelPlan plan = with_words_of(plan_of(x[1], x[2], x[3], x[4]), f);
    Kernel& k = kernels.emplace_back();
    k.device = device_of(x[0]);
    k.compiled = compiled_as(plan, x, (x[1] == 128 && x[3] == 64) || x[1] == 192 || (x[1] == 256 && x[2] == 128));
    k.name = fmt::format("sm_{} {:>3} {:>3} x {:<3}{}{}{}{}{}{}", x[0], x[1], x[2], x[3], f.causal ? " causal" : "",
                         f.local ? " local" : "", f.alibi ? " alibi" : "", f.softcap ? " softcap" : "",
                         f.whole_tiles ? " whole tiles" : "", f.whole_rows ? "" : " part of rows");
  }
  return kernels;
}

// As its plan makes them. Those of headdim 64, 128 and 256 were compiled when the mechanisms were chosen.
std::vector<Kernel> flash_attention_3() {
  std::vector<Kernel> kernels;
  for (const auto& [line, x] : read_csv<15>("registers_fa3.csv")) {
    const bool varlen = x[6] != 0, paged = x[7] != 0, split = x[9] != 0;
    Problem p{1, 16, 16, 4096, 4096, x[1], x[2], Dtype::bf16, {}, x[3] != 0 ? Causal::bottom_right : Causal::none};
    if (x[4] != 0) p.window_left = p.window_right = 512;
    if (x[5] != 0) p.softcap = 30;
    if (varlen) p.varlen_q = p.varlen_k = {4096};
    if (x[10] == 1) p.seqlen_q = 64;  // one query tile: no pairs
    KernelPlan plan = fa3_plan(p, 232448);
    EXPECT_EQ(plan.cluster, x[10]) << line;
    plan.known_registers = 0;
    if (paged) plan.copy_kind = CopyKind::cp_async;
    if (split && !varlen) {  // a CTA a tile
      plan.persistence = Persistence::none;
      plan.producer_words = fa3_producer_words(plan.persistence, plan.cluster, varlen, false);
      plan.tile_words = fa3_tile_words(plan.persistence, plan.cluster);
    }
    Kernel& k = kernels.emplace_back();
    k.device = "h100";
    k.compiled = compiled_as(plan, x, x[1] == 96 || x[1] == 192);
    k.name = fmt::format("sm_90a {:>3}/{:<3}{}{}{}{}{}{}{}{}", x[1], x[2], x[3] != 0 ? " causal" : "",
                         x[4] != 0 ? " local" : "", x[5] != 0 ? " softcap" : "", varlen ? " varlen" : "",
                         paged ? " paged" : "", x[8] != 0 ? " packed" : "", split ? " split" : "",
                         x[10] == 2 ? " in pairs" : "");
  }
  return kernels;
}

/// Prints the kernels of a family beside their estimates; its errors, and those of its kernels held back.
struct Comparison {
  Errors all, kept_back;
};
Comparison compare(const char* family, const std::vector<Kernel>& kernels) {
  Comparison c;
  fmt::print("{}: registers (predicted) | stack bytes (predicted)\n", family);
  for (const Kernel& k : kernels) {
    RegisterEstimate e = estimate_registers(k.compiled.plan, load_device(k.device), k.compiled.bounds);
    e.stack_words += e.producer_stack_words;
    c.all.add(k.compiled, e);
    if (k.compiled.held_back) c.kept_back.add(k.compiled, e);
    fmt::print("{:<52} {:>3} ({:>3}) | {:>3} ({:>3}){}{}\n", k.name, k.compiled.registers, e.registers_per_thread,
               k.compiled.stack_bytes, 4 * e.stack_words, k.compiled.held_back ? " held back" : "",
               (e.stack_words > 0) == (k.compiled.stack_bytes > 0) ? "" : "  WRONG");
  }
  c.all.print(family);
  c.kept_back.print("held back of it");
  EXPECT_LT(c.all.registers / c.all.rows, 0.08) << family;
  return c;
}

// Issue 4 asks for spills or not right on 95% of at least 60 and registers within 8% on average. Wrong are 2 of ours, 3
// of FlashAttention 2's, none of FlashAttention 3's, 5 of all 127: docs/simulator.md says which, and what is close.
TEST(Registers, AgreeWithTheCompilerOnKernelsThatAreUsed) {
  const Comparison ours = compare("gpu/sm80", gpu_sm80());
  const Comparison fa2 = compare("FlashAttention 2", flash_attention_2());
  const Comparison fa3 = compare("FlashAttention 3", flash_attention_3());
  Errors all, kept_back;
  for (const Comparison* c : {&ours, &fa2, &fa3}) all.add(c->all), kept_back.add(c->kept_back);
  all.print("all");
  kept_back.print("held back");
  EXPECT_GE(all.rows, 110);
  EXPECT_GE(kept_back.rows, all.rows / 4);
  EXPECT_LE(ours.all.wrong, ours.all.rows / 11);
  EXPECT_LE(fa2.all.wrong, fa2.all.rows / 20);
  EXPECT_EQ(fa3.all.wrong, 0);
  EXPECT_LE(all.wrong, all.rows / 25);
  EXPECT_EQ(kept_back.wrong, 0);
  for (const Errors* part : {&all, &kept_back}) {
    EXPECT_LT(part->registers / part->rows, 0.03);
    EXPECT_LT(part->stack_off / part->stack, 0.4);
  }
}

// Where a kernel wants a little more than it is given, a compiler parks the three or four words that only the loop
// around the key tiles and the end read, or does not: docs/simulator.md.
TEST(Registers, AgreeLessWellOnOtherTilesOfGpuSm80) {
  const Comparison c = compare("gpu/sm80, other tiles", gpu_sm80_grid());
  EXPECT_GE(c.all.rows, 80);
  EXPECT_LE(c.all.wrong, c.all.rows / 7);
  EXPECT_LE(c.kept_back.wrong, c.kept_back.rows / 8);
}

}  // namespace
}  // namespace attest
