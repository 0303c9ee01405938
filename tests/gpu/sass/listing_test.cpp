#include "attest/sass/listing.h"

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

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
		..........



Fatbin elf code:
================
arch = sm_90
	code for sm_90
		Function : plain
	.headerflags	@"EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/              @UP0 UIADD3 UR4, UR4, 0x1, URZ ;                         /* 0x0 */
        /*0010*/                   BRA.U UP1, `(.L_x_2) ;                              /* 0x0 */
		..........


		Function : _ZN6attest4sm804copyIfEEvPT_
	.headerflags	@"EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   EXIT ;                                              /* 0x0 */
		..........



Fatbin ptx code:
================
arch = sm_90
)sass";

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

SassReader reader_of(std::vector<std::string> parts = {}, const std::string& arch = "") {
  SassReader reader(std::move(parts), arch);
  for (const std::string& line : lines_of(listing)) reader.line(line);
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

// Behind any of its lines: within a function from its name to its dots.
TEST(SassListing, IsCutOffWithinAFunction) {
  SassReader reader({"plain"}, "");
  std::string within;
  bool told = false;
  for (const std::string& line : lines_of(listing)) {
    reader.line(line);
    if (line.find("Function : ") != std::string::npos)
      within = line.ends_with("plain") ? "plain" : "void attest::sm80::copy<float>(float*)";
    if (line.find("....") != std::string::npos) within = "";
    told = told || line.find(".headerflags") != std::string::npos;
    EXPECT_EQ(reader.without_dots(), within) << line;
    EXPECT_EQ(reader.has_flags(), told) << line;
  }
  EXPECT_TRUE(told);
}

TEST(SassListing, IsCutOffWhereAnotherFunctionOrArchitectureFollows) {
  for (const char* const next : {"\t\tFunction : g", "\tcode for sm_90"}) {
    SassReader reader;
    for (const char* const line : {"\t\tFunction : f", "\t.headerflags\t@\"EF_CUDA_SM90\"", next, "\t\t..........\r"})
      reader.line(line);
    EXPECT_EQ(reader.without_dots(), "f") << next;
  }
}

// Of instructions, loops, functions and names, each without an end.
TEST(SassListing, KeepsNoMoreThanItMay) {
  constexpr std::size_t most = 1 << 20;
  const auto lines_until_full = [&](const std::string& part, const auto& line) {
    SassReader reader({part}, "", most);
    reader.line("\t\tFunction : f");
    for (int lines = 1; lines <= 100'000; ++lines) try {
        reader.line(line(lines));
      } catch (const std::length_error& error) {
        const std::string taken = "that take more than 1048576 bytes of memory";
        EXPECT_EQ(error.what(), part == "g" ? "names of functions " + taken
                                            : "functions " + taken + "; ask for fewer, by name or architecture");
        return lines;
      }
    return 0;
  };
  const auto instruction = [](int i) { return "/*" + std::to_string(i) + "*/ FADD R1, R1, R1 ;"; };
  const auto function = [](int i) { return "Function : f" + std::to_string(i); };
  const auto loop = [](int i) { return "/*" + std::to_string(i) + "*/ BRA 0x0 ;"; };
  const int instructions = lines_until_full("f", instruction), functions = lines_until_full("f", function),
            names = lines_until_full("g", function), loops = lines_until_full("f", loop);
  EXPECT_GT(instructions, 10'000);
  EXPECT_LT(loops, 300) << "6 KiB each";
  EXPECT_GT(loops, 100);
  EXPECT_GT(functions, 100);
  EXPECT_GT(names, 10 * functions);
  EXPECT_EQ(lines_until_full("g", instruction), 0) << "nobody asked for f";
  EXPECT_EQ(lines_until_full("f", [](int) { return "Function : g"; }), 0) << "a name is kept once";
}

// A line that names an architecture may have none behind it.
TEST(SassListing, HasTheArchitecturesOfFunctions) {
  SassReader reader;
  for (const char* const line : {"\tcode for sm_7", "\tcode for sm_90", "\t\tFunction : f", "\tcode for sm_90"})
    reader.line(line);
  EXPECT_EQ(reader.archs(), std::vector<std::string>{"sm_90"});
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
