// Listings that are too long or cut off, by limits that are reached at once.
#include "machine_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "attest/problem/error.h"
#include "run_attest.h"

namespace attest::tools {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

/// A folder with an object and a cuobjdump, a script of ours that is the first one in $PATH.
class MachineCode : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
    folder_.write("my.so",
                  "\x7f"
                  "ELF");
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  /// Why the object, or a listing of the same text, is refused.
  std::string refused(const std::string& script, const MachineCodeLimits& limits = {}, const std::string& arch = "") {
    folder_.write("cuobjdump", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder_.path() / "cuobjdump", std::filesystem::perms::owner_all);
    return refused_file("my.so", limits, arch);
  }
  std::string refused_file(const std::string& name, const MachineCodeLimits& limits = {},
                           const std::string& arch = "") {
    try {
      read_machine_code((folder_.path() / name).string(), {}, arch, limits);
    } catch (const EnvironmentError& error) {
      return error.what();
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }

  const Folder folder_;

 private:
  const std::string path_ = std::getenv("PATH");
};

constexpr const char* function = "printf 'code for sm_90\\nFunction : f\\n.headerflags\\n/*0000*/ EXIT ;\\n'; ";

TEST_F(MachineCode, WhatIsPrintedForEverIsReadUpToALimit) {
  MachineCodeLimits limits;
  limits.printed_bytes = 1 << 20;
  EXPECT_THAT(refused("exec yes", limits), HasSubstr("cuobjdump: '"));
  EXPECT_THAT(refused("exec yes", limits), HasSubstr("': more than 1048576 bytes printed"));
  EXPECT_THAT(refused("exec yes", limits, "sm_90"), HasSubstr("': more than 67108864 bytes printed")) << "a list";
  limits = {};
  limits.kept_bytes = 1 << 20;
  EXPECT_THAT(refused(std::string(function) + "exec yes '/*0010*/ EXIT ;'", limits),
              MatchesRegex("kernel: '.*' has functions that take more than 1048576 bytes of memory; ask for fewer.*"));
}

TEST_F(MachineCode, OfAListingTooIsNoMoreKept) {
  MachineCodeLimits limits;
  limits.kept_bytes = 1 << 14;
  std::string text = "Function : f\n";
  for (int i = 0; i < 1000; ++i) text += "/*0000*/ EXIT ;\n";
  folder_.write("my.sass", text);
  EXPECT_EQ(refused_file("my.sass"), "");
  EXPECT_THAT(refused_file("my.sass", limits),
              HasSubstr("my.sass' has functions that take more than 16384 bytes of memory; ask for fewer"));
}

TEST_F(MachineCode, OfLoopsToo) {
  std::string text = "Function : f\n";
  for (int i = 0; i < 1000; ++i) text += "/*0010*/ BRA 0x0 ;\n";
  folder_.write("my.sass", text);
  MachineCodeLimits limits;
  limits.kept_bytes = 1 << 20;
  EXPECT_THAT(refused_file("my.sass", limits), HasSubstr("my.sass' has functions that take more than 1048576 bytes"));
}

TEST_F(MachineCode, AFunctionWithoutItsEndIsRefused) {
  const std::string dots = "printf '\t\t..........\\n\\n'";
  EXPECT_EQ(refused(function + dots), "");
  EXPECT_THAT(refused(function),
              HasSubstr("': what it printed is cut off: the line of dots behind function 'f' is missing"));
  folder_.write("my.sass", "Function : f\n.headerflags\n/*0000*/ EXIT ;\n");
  EXPECT_THAT(refused_file("my.sass"),
              HasSubstr("my.sass' is cut off: the line of dots behind function 'f' is missing"));
  folder_.write("my.sass", "Function : f\n.headerflags\n/*0000*/ EXIT ;\n\t\t..........\n");
  EXPECT_EQ(refused_file("my.sass"), "");
  folder_.write("my.sass", "Function : f\n/*0000*/ EXIT ;\nFunction : g\n/*0000*/ EXIT ;\n");
  EXPECT_EQ(refused_file("my.sass"), "") << "as people cut functions out of listings and write them";
}

// Before a line has said that cuobjdump printed it.
TEST_F(MachineCode, WhatIsCutOffBehindItsFirstNameIsRefused) {
  EXPECT_THAT(refused("printf 'code for sm_90\n\t\tFunction : f\n'"),
              HasSubstr("': what it printed is cut off: the line of dots behind function 'f' is missing"));
  EXPECT_THAT(refused("printf 'code for sm_90\n\t\tFunction : f\n\t\t..........\n'"),
              HasSubstr("my.so' has function 'f' without instructions"));
  folder_.write("my.sass", "code for sm_90\n\t\tFunction : f\n");
  EXPECT_THAT(refused_file("my.sass"), HasSubstr("my.sass' has function 'f' without instructions"));
}

TEST_F(MachineCode, AnArchitectureWithoutFunctionsIsNotThere) {
  folder_.write("my.sass", "code for sm_7\ncode for sm_90\nFunction : f\n/*0000*/ EXIT ;\n");
  EXPECT_THAT(refused_file("my.sass", {}, "sm_7"), HasSubstr("arch: 'sm_7' has no code in '"));
  EXPECT_THAT(refused_file("my.sass", {}, "sm_7"), HasSubstr("', which has it for sm_90"));
  EXPECT_EQ(refused_file("my.sass", {}, "sm_90"), "");
}

}  // namespace
}  // namespace attest::tools
