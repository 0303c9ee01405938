#include "attest/sass/loops.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

std::vector<SassInstruction> code_of(const std::vector<const char*>& opcodes) {
  std::vector<SassInstruction> code;
  for (const char* opcode : opcodes)
    code.push_back({static_cast<std::int64_t>(code.size()) * 16, opcode, std::nullopt});
  return code;
}

TEST(SassCounts, GoByFamilyAndWidth) {
  const SassCounts counts = count_sass(code_of({"LDGSTS.E.BYPASS.LTC128B.128",
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
                                                "STSM.16.M88.4"}));
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
  const std::vector<SassLoop> loops = main_loops(f);
  ASSERT_EQ(loops.size(), 2u);
  EXPECT_EQ(loops[0].first_address, 0x30);
  EXPECT_EQ(loops[0].last_address, 0x70);
  EXPECT_EQ(loops[0].counts.instructions, 5);
  EXPECT_EQ(loops[1].first_address, 0x80);
  EXPECT_EQ(loops[1].counts.of(SassFamily::multiply), 2);
  EXPECT_EQ(loops[1].counts.of(SassFamily::exponential), 1);
}

TEST(MainLoops, AreNoneWithoutMatrixWorkOrWithAStrayTarget) {
  SassFunction f;
  f.code = code_of({"MUFU.EX2", "BRA", "HMMA", "MUFU.EX2", "BRA"});
  f.code[1].target = 0;     // exponentials alone
  f.code[4].target = 0x28;  // between two instructions
  EXPECT_TRUE(main_loops(f).empty());
}

}  // namespace
}  // namespace attest
