// Results that cannot be written where the user wants them, or would replace what is read.
#include <filesystem>
#include <string>
#include <vector>

#include "bad_input.h"

namespace attest::tools {
namespace {

const std::vector<BadInput> bad_outputs = {
    // arrays
    {{"reference"}, 2, "out: '' is no folder; --out DIR says where the arrays go"},
    {{"reference", "--q", "truncated.json", "--out", "o"},
     2,
     "q: 'truncated.json' is given without the others of --q, --k, --v"},
    {{"reference", "--q", "truncated.json", "--k", "x", "--v", "x", "--out", "o"},
     2,
     "q: 'truncated.json' is not a .npy file"},
    {{"reference", "--q", "x", "--k", "x", "--v", "x", "--seed", "1", "--out", "o"},
     2,
     "seed: '1' contradicts --q, --k, --v, which are the inputs"},

    // outputs
    {{"predict", "--case", "truncated.json", "--json", "./truncated.json"},
     2,
     "json: './truncated.json' is read for --case, and would be replaced"},
    {{"reference", "--out", "-"}, 2, "out: '-' is no folder; only --json writes to stdout"},
    {{"reference", "--out", ".", "--json", "o.npy"},
     2,
     "out: './o.npy' is the file of --json as well; one would replace the other"},
    {{"predict", "--json", "missing/x.json"}, 3, "'missing/x.json': cannot be written: No such file or directory"},
    {{"predict", "--json", "."}, 3, "'.': cannot be written: it is a folder"},
    {{"predict", "--html", "."}, 3, "'.': cannot be written: it is a folder"},
    {{"predict", "--json", "truncated.json/x"}, 3, "'truncated.json/x': cannot be written: Not a directory"},
    {{"fuzz", "--time", "8h", "--json", "missing/x.json"},
     3,
     "'missing/x.json': cannot be written: No such file or directory"},
    {{"reference", "--out", "truncated.json"}, 3, "'truncated.json': cannot be made: Not a directory"},
};

class BadOutputTest : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadOutputTest, OneLineAndNothingWritten) { expect_one_line_and_nothing_written(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Table, BadOutputTest, ::testing::ValuesIn(bad_outputs));

/// A script of bash, in which $A is the program.
Ran run_script(const std::string& script, const Folder& folder) {
  Conduct conduct;
  conduct.program = "/bin/bash";
  return run_attest({"-c", "A='" ATTEST_PROGRAM "'; " + script}, folder, conduct);
}

TEST(BadOutput, APipeThatNobodyReadsIsNoEndOfTheProgram) {
  const Folder folder;
  const Ran ran = run_script(
      "exec 3> >(:); wait $!; \"$A\" measure --panel --from '" ATTEST_PANEL "' --html page.html >&3; exit $?", folder);
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.err, "attest: stdout: cannot be written\n");
  EXPECT_EQ(folder.files(), std::vector<std::string>{"page.html"});
}

TEST(BadOutput, StdoutsFileAndTheProgramAreNotReplaced) {
  const Folder folder;
  const Ran twice = run_script("\"$A\" devices --json r.txt > r.txt", folder);
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_EQ(twice.err, "attest: json: 'r.txt' is where stdout goes as well; one would replace the other\n");
  const Ran itself = run_script("cp \"$A\" me; ./me devices --json me", folder);
  EXPECT_EQ(itself.exit_code, 2);
  EXPECT_EQ(itself.err, "attest: json: 'me' is this program, and would be replaced\n");
}

TEST(BadOutput, WhatIsNoFileIsWrittenInPlaceUnderWhateverName) {
  const Folder folder;
  const Ran pipe = run_script("\"$A\" devices --json /dev/stdout | grep -c attest/devices/1", folder);
  EXPECT_EQ(pipe.out, "1\n") << pipe.err;
  const Ran substituted =
      run_script("\"$A\" devices --json >(cat > copy.json) > /dev/null; wait $!; cat copy.json", folder);
  EXPECT_NE(substituted.out.find("attest/devices/1"), std::string::npos) << substituted.err;
}

TEST(BadOutput, ALinkToItselfIsNotReplaced) {
  const Folder folder;
  std::filesystem::create_symlink("loop", folder.path() / "loop");
  folder.write("case.json", "{}");
  using Words = std::vector<std::string>;
  for (const Words& command : {Words{"doctor"}, Words{"check", "--case", "case.json"}}) {
    Words words = command;
    words.insert(words.end(), {"--json", "loop"});
    const Ran ran = run_attest(words, folder);
    EXPECT_EQ(ran.exit_code, 3);
    EXPECT_EQ(ran.err, "attest: 'loop': cannot be written: Too many levels of symbolic links\n");
  }
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "loop"));
}

TEST(BadOutput, AFullDiskLeavesTheOldFile) {
  const Folder folder;
  const Ran fuzz = run_attest({"fuzz", "--cases", "4", "--threads", "1", "--junit", "/dev/full"}, folder);
  EXPECT_EQ(fuzz.exit_code, 3);
  EXPECT_TRUE(fuzz.out.starts_with("passed on cpu: 4 cases")) << "what was found is told all the same";
  const Ran reference = run_attest({"reference", "--seqlen-q", "4", "--out", "o", "--json", "/dev/full"}, folder);
  EXPECT_EQ(reference.exit_code, 3);
  EXPECT_EQ(reference.out, "") << "nothing was written";
  EXPECT_TRUE(folder.files().empty());
  const Ran ran = run_attest({"doctor", "--json", "/dev/full"}, folder);
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.err, "attest: '/dev/full': cannot be written: No space left on device\n");
}

}  // namespace
}  // namespace attest::tools
