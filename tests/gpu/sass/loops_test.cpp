#include "attest/sass/loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "attest/problem/splitmix64.h"

namespace attest {
namespace {

std::vector<SassInstruction> code_of(const std::vector<const char*>& opcodes) {
  std::vector<SassInstruction> code;
  for (const char* opcode : opcodes)
    code.push_back({static_cast<std::int64_t>(code.size()) * 16, opcode, std::nullopt});
  return code;
}

TEST(SassCounts, GoByFamilyAndWidth) {
  const SassCounts counts = contents_of(code_of({"LDGSTS.E.BYPASS.LTC128B.128",
                                                 "LDGSTS.E",
                                                 "LDG.E.64",
                                                 "LDG.E.U16",
                                                 "LDG.E.U8",
                                                 "LDGDEPBAR",
                                                 "LDSM.16.M88.4",
                                                 "LDS",
                                                 "STS.128",
                                                 "HMMA.16816.F32.BF16",
                                                 "IMMA.16832.S8.S8",
                                                 "HGMMA.64x128x16.F32.BF16",
                                                 "MUFU.EX2",
                                                 "MUFU.RCP",
                                                 "LDL.LU",
                                                 "STL.64",
                                                 "BAR.SYNC.DEFER_BLOCKING",
                                                 "SYNCS.PHASECHK.TRANS64.TRYWAIT",
                                                 "UTMALDG.4D",
                                                 "STSM.16.M88.4"}))
                                .whole;
  EXPECT_EQ(counts.instructions, 20);
  EXPECT_EQ(counts.of(SassFamily::copy_async), 2);
  EXPECT_EQ(counts.widths_of(SassFamily::copy_async), (SassWidths{{4, 1}, {16, 1}}));
  EXPECT_EQ(counts.of(SassFamily::load_global), 3) << "LDGDEPBAR and LDGSTS are no LDG";
  EXPECT_EQ(counts.widths_of(SassFamily::load_global), (SassWidths{{1, 1}, {2, 1}, {8, 1}}));
  EXPECT_EQ(counts.of(SassFamily::load_matrix), 1);
  EXPECT_EQ(counts.of(SassFamily::load_shared), 1) << "LDSM is no LDS";
  EXPECT_EQ(counts.of(SassFamily::multiply), 2);
  EXPECT_EQ(counts.of(SassFamily::multiply_warpgroup), 1);
  EXPECT_EQ(counts.of(SassFamily::exponential), 1) << "MUFU.RCP is none";
  EXPECT_EQ(counts.widths_of(SassFamily::store_local), (SassWidths{{8, 1}}));
  for (const SassFamily one : {SassFamily::store_shared, SassFamily::load_local, SassFamily::barrier,
                               SassFamily::mbarrier, SassFamily::copy_bulk, SassFamily::store_matrix})
    EXPECT_EQ(counts.of(one), 1) << opcode_of(one);
}

// A walk over tiles of queries around two loops over key tiles, one of which masks; and a loop that only copies.
TEST(MainLoops, AreThoseOverKeyTiles) {
  SassFunction f;
  f.code = code_of({"S2R", "LDGSTS.E.128", "BRA",                // 0x20 back to 0x10
                    "HMMA", "ISETP", "MUFU.EX2", "HMMA", "BRA",  // 0x70 back to 0x30
                    "HMMA", "MUFU.EX2", "HMMA", "BRA",           // 0xb0 back to 0x80
                    "STG.E", "BRA", "BRA", "EXIT"});             // 0xd0 back to 0, 0xe0 ahead
  f.code[2].target = 0x10, f.code[7].target = 0x30, f.code[11].target = 0x80, f.code[13].target = 0,
  f.code[14].target = 0xf0;
  const std::vector<SassLoop> loops = contents_of(f.code).main_loops;
  ASSERT_EQ(loops.size(), 2u);
  EXPECT_EQ(loops[0].first_address, 0x30);
  EXPECT_EQ(loops[0].last_address, 0x70);
  EXPECT_EQ(loops[0].counts.instructions, 5);
  EXPECT_EQ(loops[1].first_address, 0x80);
  EXPECT_EQ(loops[1].counts.of(SassFamily::multiply), 2);
  EXPECT_EQ(loops[1].counts.of(SassFamily::exponential), 1);
}

struct Kind {
  const char* opcode;
  SassFamily family;
  int bytes_a_lane;  // 0 where the family has no widths
};
constexpr Kind kinds[] = {{"HMMA.16816.F32", SassFamily::multiply, 0}, {"HGMMA", SassFamily::multiply_warpgroup, 0},
                          {"MUFU.EX2", SassFamily::exponential, 0},    {"LDG.E.64", SassFamily::load_global, 8},
                          {"LDG.E", SassFamily::load_global, 4},       {"STL", SassFamily::store_local, 4}};

/// One by one, of `kinds` and others that are of no family.
SassCounts counted_by_hand(std::span<const SassInstruction> code) {
  SassCounts counts;
  for (const SassInstruction& one : code) {
    ++counts.instructions;
    const Kind* const kind = std::ranges::find(kinds, one.opcode, &Kind::opcode);
    if (kind == std::end(kinds)) continue;
    const auto f = static_cast<std::size_t>(kind->family);
    ++counts.by_family[f];
    if (kind->bytes_a_lane != 0) ++counts.widths[f][kind->bytes_a_lane];
  }
  return counts;
}

// Branches anywhere back among instructions of all kinds, against a count of each loop by itself.
TEST(MainLoops, NestedAnyhowAreAsCountedOneByOne) {
  std::uint64_t state = 20261130;
  const auto below = [&](std::uint64_t n) { return static_cast<std::size_t>(next_splitmix64(state) % n); };
  std::vector<const char*> opcodes = {"FADD"};
  for (const Kind& kind : kinds) opcodes.push_back(kind.opcode);
  std::size_t loops = 0;
  for (int round = 0; round < 200; ++round) {
    SassFunction f;
    f.code = code_of(std::vector<const char*>(1 + below(60), "BRA"));
    for (SassInstruction& one : f.code)
      below(3) == 0 ? void(one.target = static_cast<std::int64_t>(16 * below(f.code.size())))
                    : void(one.opcode = opcodes[below(opcodes.size())]);
    std::vector<SassLoop> all;
    std::int64_t fewest = INT64_MAX;
    for (std::size_t last = 0; last < f.code.size(); ++last) {
      const std::size_t first = f.code[last].target ? static_cast<std::size_t>(*f.code[last].target / 16) : last;
      if (first >= last) continue;
      const SassCounts counts = counted_by_hand(std::span(f.code).subspan(first, last - first + 1));
      const std::int64_t steps = counts.of(SassFamily::multiply) + counts.of(SassFamily::multiply_warpgroup);
      if (steps == 0 || counts.of(SassFamily::exponential) == 0) continue;
      fewest = std::min(fewest, steps);
      all.push_back({f.code[first].address, f.code[last].address, counts});
    }
    std::erase_if(all, [&](const SassLoop& loop) {
      return loop.counts.of(SassFamily::multiply) + loop.counts.of(SassFamily::multiply_warpgroup) > fewest;
    });
    std::ranges::stable_sort(all, {}, &SassLoop::first_address);
    const SassContents contents = contents_of(f.code);
    EXPECT_EQ(contents.whole, counted_by_hand(f.code)) << "round " << round;
    EXPECT_EQ(contents.main_loops, all) << "round " << round;
    loops += all.size();
  }
  EXPECT_GT(loops, 100u);
}

// Ten thousand branches back to the beginning of as many instructions: counted one by one they are 10^8.
TEST(MainLoops, OfAsManyBranchesTakeNoSquareOfTheTime) {
  SassFunction f;
  f.code = code_of({"HMMA.16816.F32", "MUFU.EX2"});
  for (int i = 0; i < 10000; ++i)
    for (const char* const opcode : {"LDG.E.64", "BRA"})
      f.code.push_back({static_cast<std::int64_t>(f.code.size()) * 16, opcode, std::nullopt});
  for (SassInstruction& one : f.code)
    if (one.opcode == "BRA") one.target = 0;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<SassLoop> loops = contents_of(f.code).main_loops;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  ASSERT_EQ(loops.size(), 10000u);
  EXPECT_EQ(loops.back().counts.widths_of(SassFamily::load_global), (SassWidths{{8, 10000}}));
}

// As one that was put together by hand may have it.
TEST(MainLoops, AreNoneBackToWhatStandsBehindTheBranch) {
  SassFunction f;
  f.code = code_of({"BRA", "HMMA", "MUFU.EX2", "EXIT"});
  f.code[0].address = 0x40, f.code[0].target = 0x30;
  EXPECT_TRUE(contents_of(f.code).main_loops.empty());
}

TEST(MainLoops, AreNoneWithoutMatrixWorkOrWithAStrayTarget) {
  SassFunction f;
  f.code = code_of({"MUFU.EX2", "BRA", "HMMA", "MUFU.EX2", "BRA"});
  f.code[1].target = 0;     // exponentials alone
  f.code[4].target = 0x28;  // between two instructions
  EXPECT_TRUE(contents_of(f.code).main_loops.empty());
}

}  // namespace
}  // namespace attest
