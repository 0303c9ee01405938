// Registers and spill against compilers: what ptxas says of skeletons, and what launches and counters say of
// FlashAttention 2 and 3. What it says of kernels that are used: registers_kernels_test.cpp.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/problem/error.h"
#include "attest/simulator/registers.h"
#include "attest/simulator/report.h"
#include "compiled.h"
#include "measured/counted_calls.h"
#include "plan_of.h"

namespace attest {
namespace {

/// FNV-1a of the instantiation as the CSV writes it: every third one is held back.
bool held_back(const std::string& row) {
  std::uint32_t hash = 2166136261;
  std::size_t at = 0;
  for (int commas = 0; (commas += row[at] == ',') < 7; ++at)
    hash = (hash ^ static_cast<unsigned char>(row[at])) * 16777619u;
  return hash % 3 == 0;
}

std::vector<Compiled> read_compiled(const std::string& name) {
  std::vector<Compiled> rows;
  for (const auto& [line, x] : read_csv<11>(name)) {
    Compiled& row = rows.emplace_back();
    row.plan = plan_of(x[0], x[1], x[2], x[3], x[4]);
    row.plan.q_in_registers = x[5] != 0;
    row.plan.loop_words = 12;  // at the head of its loop: it has one mask, and no more addresses than it needs
    row.bounds.min_ctas_per_sm = x[6];
    row.registers = x[7], row.stack_bytes = x[8], row.store_bytes = x[9];
    row.held_back = held_back(line);
  }
  return rows;
}

struct Comparison {
  Errors looked_at, kept_back, all, with_room, near_limit, elsewhere;
};

/// Prints every row and returns the errors by part.
Comparison compare(const std::string& name, const char* device_name) {
  const DeviceSpec device = load_device(device_name);
  Comparison c;
  fmt::print(
      "{}\nheaddim tile    warps stages Q CTAs | registers predicted error | stack bytes predicted | stores "
      "predicted\n",
      name);
  for (const Compiled& row : read_compiled(name)) {
    const KernelPlan& p = row.plan;
    const RegisterEstimate e = estimate_registers(p, device, row.bounds);
    fmt::print("{:>7} {:>3}x{:<3} {:>5} {:>6} {:>1} {:>4} | {:>9} {:>9} {:>4.0f}% | {:>11} {:>9} | {:>6} {:>9}{}\n",
               p.headdim, p.tile_m, p.tile_n, p.num_warps, p.stages, p.q_in_registers ? 1 : 0,
               row.bounds.min_ctas_per_sm, row.registers, e.registers_per_thread,
               100.0 * (e.registers_per_thread - row.registers) / row.registers, row.stack_bytes, 4 * e.stack_words,
               row.store_bytes, 4 * e.spill_words, row.held_back ? "  held back" : "");
    c.all.add(row, e);
    (row.held_back ? c.kept_back : c.looked_at).add(row, e);
    if (e.demand < e.limit) c.with_room.add(row, e);
    (std::abs(e.least - e.limit) <= 32 ? c.near_limit : c.elsewhere).add(row, e);
  }
  c.looked_at.print("looked at");
  c.kept_back.print("held back");
  c.with_room.print("all, where it has room");
  c.near_limit.print("all, within 32 of the limit");
  c.elsewhere.print("all, further from it");
  c.all.print("all");
  return c;
}

// bench/hardware/registers/compile_grid.py wrote it.
TEST(Registers, AgreeWithTheCompilerOnSm80) {
  const Comparison c = compare("registers_sm80.csv", "a100");
  EXPECT_GE(c.all.rows, 80);
  EXPECT_GE(c.kept_back.rows, 25);
  for (const Errors* part : {&c.all, &c.kept_back}) {
    EXPECT_LT(part->registers / part->rows, 0.08);
    EXPECT_LE(part->wrong, part->rows / 20);
    EXPECT_LT(part->stack_off / part->stack, 0.35);
  }
  EXPECT_LT(c.with_room.registers / c.with_room.rows, 0.08);
}

// What sm_90's compiler parks was chosen from the rows that are not held back.
TEST(Registers, AgreeWithTheCompilerOnSm90) {
  const Comparison c = compare("registers_sm90.csv", "h100");
  EXPECT_GE(c.all.rows, 80);
  for (const Errors* part : {&c.all, &c.looked_at, &c.kept_back}) {
    EXPECT_LT(part->registers / part->rows, 0.08);
    EXPECT_LE(part->wrong, part->rows / 20);
    EXPECT_LT(part->stack_off / part->stack, 0.35);
  }
  EXPECT_LT(c.with_room.registers / c.with_room.rows, 0.08);
}

/// A row of registers_sm90a.csv: a warp-specialised instantiation with wgmma. `refused_below` is what ptxas asks for
/// where it compiles nothing.
struct CompiledWgmma {
  KernelPlan plan;
  int registers = 0, stack_bytes = 0, refused_below = 0;
};

std::vector<CompiledWgmma> read_compiled_wgmma() {
  std::vector<CompiledWgmma> rows;
  for (const auto& [line, x] : read_csv<12>("registers_sm90a.csv")) {
    CompiledWgmma& row = rows.emplace_back();
    row.plan = plan_of(x[0], x[1], x[2], x[1] / 16, x[3]);
    row.plan.matrix_kind = MatrixKind::wgmma, row.plan.copy_kind = CopyKind::tma, row.plan.producer_warps = 4;
    row.plan.p_in_smem = x[4] != 0;
    row.plan.persistence = x[5] != 0 ? Persistence::dynamic : Persistence::static_stride;
    row.registers = x[6], row.stack_bytes = x[7], row.refused_below = x[11];
  }
  return rows;
}

// The rows come in the order of a hash; the model was made when 450 of them were compiled, and the others came after.
TEST(Registers, AgreeWithTheCompilerOnWarpSpecialisedWgmma) {
  constexpr std::size_t looked_at = 450;
  const DeviceSpec device = load_device("h100");
  const std::vector<CompiledWgmma> rows = read_compiled_wgmma();
  ASSERT_GE(rows.size(), looked_at + 60);
  Errors parts[2];
  int refused = 0;
  fmt::print("headdim tile    stages P    order   | registers predicted | stack bytes predicted, of a producer\n");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const CompiledWgmma& row = rows[i];
    const KernelPlan& p = row.plan;
    RegisterEstimate e;
    std::string refusal;
    try {
      e = estimate_registers(p, device);
    } catch (const InvalidInput& error) {
      refusal = error.what();
    }
    EXPECT_EQ(refusal.empty(), row.refused_below == 0) << refusal;
    if (row.refused_below != 0) {
      EXPECT_THAT(refusal, testing::HasSubstr(fmt::format("needs {}", row.refused_below)));
      ++refused;
      continue;
    }
    fmt::print("{:>7} {:>3}x{:<3} {:>6} {} {} | {:>9} {:>9} | {:>11} {:>9} {:>14}{}\n", p.headdim, p.tile_m, p.tile_n,
               p.stages, p.p_in_smem ? "smem" : "regs", p.persistence == Persistence::dynamic ? "dynamic" : "static ",
               row.registers, e.registers_per_thread, row.stack_bytes, 4 * e.stack_words, 4 * e.producer_stack_words,
               i < looked_at ? "" : "  held back");
    Compiled compared;
    compared.registers = row.registers, compared.stack_bytes = row.stack_bytes;
    e.stack_words += e.producer_stack_words;
    parts[i < looked_at ? 0 : 1].add(compared, e);
  }
  parts[0].print("looked at");
  parts[1].print("held back");
  fmt::print("{} refused by ptxas and by us\n", refused);
  for (const Errors& part : parts) {
    EXPECT_LT(part.registers / part.rows, 0.01);
    EXPECT_LE(part.wrong, part.rows / 20);
    EXPECT_LT(part.stack_off / part.stack, 0.3);
  }
}

// Kernels that nobody here compiled, estimated as if their plans did not know. Spill is what a call writes beyond O
// and LSE; the 32 bytes a tile of a counter that hands out tiles are no spill.
TEST(Registers, AgreeWithCountedCallsOfFlashAttention) {
  const DeviceSpec h200 = load_device("h200");
  std::map<std::tuple<std::string, int, bool, bool>, CountedCall> kernels;  // one call of each
  for (const char* file : {"h200_third_party.csv", "h200_more.csv"})
    for (const CountedCall& call : counted_calls(std::string(ATTEST_MEASURED "/") + file))
      kernels.try_emplace({call.kernel, static_cast<int>(call.at("headdim")), call.at("causal") != 0,
                           std::fmod(call.at("seqlen"), 128) != 0},
                          call);
  std::map<std::string, Errors> errors;
  fmt::print("kernel headdim | registers predicted | written beyond O and LSE, stack words predicted\n");
  for (const auto& [kernel, call] : kernels) {
    const auto& [name, headdim, causal, ragged] = kernel;
    KernelPlan plan = plan_named(name, case_of(call), h200);
    plan.known_registers = plan.spill_words_per_key_tile = plan.spill_words_per_cta = 0;
    RegisterEstimate e = estimate_registers(plan, h200);
    e.stack_words += e.producer_stack_words;
    const double owed = output_bytes(call) * (1 + 4.0 / (2 * headdim));
    const double beyond = call.at("l1tex__m_l1tex2xbar_write_bytes.sum") / owed - 1;
    Compiled compared;
    compared.registers = static_cast<int>(call.at("launch__registers_per_thread"));
    compared.stack_bytes = beyond > 0.004 ? 4 : 0;
    errors[name].add(compared, e);
    fmt::print("{} {:>3}{}{} | {} {} | {:.1f}% {}\n", name, headdim, causal ? ", causal" : "",
               ragged ? ", lengths in part of tiles" : "", compared.registers, e.registers_per_thread, 100 * beyond,
               e.stack_words);
  }
  for (const auto& [name, e] : errors) {
    fmt::print("{}: {} kernels, registers {:.1f}% off on average; spills or not {} wrong\n", name, e.rows,
               100 * e.registers / e.rows, e.wrong);
    EXPECT_LT(e.registers / e.rows, 0.08);
  }
  EXPECT_LE(errors["fa2"].wrong, 1);  // headdim 256, causal
  EXPECT_EQ(errors["fa3"].wrong, 0);
}

// Full attention at headdim 64, FlashAttention 3: the SASS of its consumers stores six words before their loop over
// query tiles and one in it, and that is what is counted beyond O and LSE.
TEST(Registers, CountedWritesOfFlashAttention3AreItsConsumersWords) {
  int calls = 0;
  for (const char* file : {"h200_third_party.csv", "h200_more.csv"})
    for (const CountedCall& call : counted_calls(std::string(ATTEST_MEASURED "/") + file)) {
      if (call.kernel != "fa3" || call.at("headdim") != 64 || call.at("causal") != 0) continue;
      const double tiles = call.at("batch") * call.at("nheads") * std::ceil(call.at("seqlen") / 192);
      const double words = 4 * 384 * (tiles + 6 * std::min(132.0, tiles));
      const double owed = output_bytes(call) * (1 + 4.0 / (2 * 64));
      EXPECT_NEAR(call.at("l1tex__m_l1tex2xbar_write_bytes.sum") / (owed + words), 1, 0.002);
      ++calls;
    }
  EXPECT_GE(calls, 4);
}

}  // namespace
}  // namespace attest
