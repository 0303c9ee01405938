#include "attest/sass/listing.h"

#include <gtest/gtest.h>

#include <sstream>

namespace attest {
namespace {

// Two functions for two architectures, as cuobjdump lays a listing out; the encodings are of no interest.
constexpr const char* listing = R"sass(
Fatbin elf code:
================
arch = sm_80
	code for sm_80
		Function : _ZN6attest4sm804copyIfEEvPT_
	.headerflags	@"EF_CUDA_SM80 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM80)"
        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;             /* 0x00000a00ff017624 */
                                                                                       /* 0x000fc600078e00ff */
        /*0010*/              @!P0 LDG.E.128 R4, [R2.64+0x10] ;                        /* 0x0000001a04000981 */
        /*0020*/               @P1 BRA 0x10 ;                                          /* 0x0000001a04000981 */
        /*0030*/                   EXIT ;                                              /* 0x000000000000794d */
	code for sm_90
		Function : plain
        /*0000*/              @UP0 UIADD3 UR4, UR4, 0x1, URZ ;                         /* 0x0 */
        /*0010*/                   BRA.U UP1, `(.L_x_2) ;                              /* 0x0 */
		Function : _ZN6attest4sm804copyIfEEvPT_
        /*0000*/                   EXIT ;                                              /* 0x0 */
)sass";

SassReader reader_of(std::vector<std::string> parts = {}, const std::string& arch = "") {
  SassReader reader(std::move(parts), arch);
  std::istringstream in(listing);
  for (std::string line; std::getline(in, line);) reader.line(line);
  return reader;
}

// C's names are their own, whatever type they would be if they were mangled.
TEST(SassListing, NamesThatAreNotMangledStay) {
  SassReader reader({}, "");
  for (const char* line : {"\tcode for sm_90", "\t\tFunction : f", "\t\tFunction : PKc"}) reader.line(line);
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"f", "PKc"}));
}

TEST(SassListing, HasFunctionsWithTheirInstructions) {
  const std::vector<SassFunction> functions = reader_of().take();
  ASSERT_EQ(functions.size(), 3u);
  EXPECT_EQ(functions[0].name, "void attest::sm80::copy<float>(float*)");
  EXPECT_EQ(functions[0].arch, "sm_80");
  ASSERT_EQ(functions[0].code.size(), 4u);
  EXPECT_EQ(functions[0].code[1].opcode, "LDG.E.128");
  EXPECT_EQ(functions[0].code[1].address, 0x10);
  EXPECT_FALSE(functions[0].code[1].target);
  EXPECT_EQ(functions[0].code[2].target, 0x10);
  EXPECT_EQ(functions[1].name, "plain");
  EXPECT_EQ(functions[1].arch, "sm_90");
  EXPECT_EQ(functions[1].code[0].opcode, "UIADD3");
  EXPECT_FALSE(functions[1].code[1].target) << "a label is no address";
}

TEST(SassListing, NamesAreFitForATerminal) {
  SassReader reader({}, "");
  for (const char* line : {"code for sm_\x07\r", "Function : a\x1b[31m\r"}) reader.line(line);
  const std::vector<SassFunction> functions = reader.take();
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0].name, "a\\x1b[31m");
  EXPECT_EQ(functions[0].arch, "sm_\\x07");
}

TEST(SassListing, KeepsWhatIsWanted) {
  EXPECT_EQ(reader_of({"copy<", "sm80"}).take().size(), 2u);
  EXPECT_EQ(reader_of({"copy<", "sm90"}).take().size(), 0u);
  EXPECT_EQ(reader_of({"copy<"}, "sm_90").take().size(), 1u);
  EXPECT_EQ(reader_of({}, "sm_80").take().front().name, "void attest::sm80::copy<float>(float*)");
}

TEST(SassListing, NamesWhatItHasEvenIfNothingIsKept) {
  const SassReader reader = reader_of({"no such function"});
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"void attest::sm80::copy<float>(float*)", "plain"}));
  EXPECT_EQ(reader.archs(), (std::vector<std::string>{"sm_80", "sm_90"}));
}

TEST(SassListing, TakesAnyTextForAListingWithoutFunctions) {
  SassReader reader;
  for (const char* line :
       {"", "Function :", "/*", "/*zz*/ FADD ;", "/*0010*/ FADD", "code for ", "/*0010*/ @P0 ;", ";/*0*/"})
    reader.line(line);
  EXPECT_TRUE(reader.names().empty());
  EXPECT_TRUE(reader.take().empty());
}

}  // namespace
}  // namespace attest
