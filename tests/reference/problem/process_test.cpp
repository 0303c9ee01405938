// Other programs: their output, their end, and that nothing of them stays.
#include "attest/problem/process.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "attest/problem/find_program.h"
#include "goes.h"

namespace attest {
namespace {

using testing::ElementsAre;

std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }

TEST(Process, GivesItsOutputAndHowItEnded) {
  const Ended ended = run_process(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(ended.out, "out\nerr\n");
  EXPECT_EQ(ended.how(), "exit status 3");
  EXPECT_EQ(run_process(shell("kill -SEGV $$")).how(), "SIGSEGV");
  EXPECT_EQ(run_process({"/no/such/program"}).exit_status, 127);
  ProcessOptions options;
  options.environment = {{"ATTEST_WORD", "said"}};
  EXPECT_EQ(run_process(shell("printf $ATTEST_WORD"), options).out, "said");
}

TEST(Process, LinesAreWholeWhateverComesAtOnce) {
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line) { lines.emplace_back(line); };
  const Ended ended = run_lines(shell("printf 'a\n\nb'; sleep 0.1; printf 'c\nd'; echo no >&2"), keep);
  EXPECT_TRUE(ended.good());
  EXPECT_THAT(lines, ElementsAre("a", "", "bc", "d"));
  EXPECT_EQ(ended.err, "no\n");
}

TEST(Process, OneThatPrintsNothingForSoLongIsKilled) {
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line) { lines.emplace_back(line); };
  EXPECT_EQ(run_lines(shell("echo a; sleep 60"), keep, 2).how(), "out of time");
  EXPECT_TRUE(run_lines(shell("for i in 1 2 3 4 5 6 7 8; do echo b; sleep 0.5; done"), keep, 3).good());
  EXPECT_EQ(lines.front(), "a");
  EXPECT_EQ(lines.size(), 9u);
}

TEST(Process, AFolderOfTheNameIsNoProgram) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("attest-{}", ::getpid());
  std::filesystem::create_directories(folder / "attest-no-such");
  EXPECT_EQ(find_program((folder / "attest-no-such").string(), {}), "");
  EXPECT_EQ(find_program("attest-no-such", {folder.string()}), "");
  std::filesystem::remove_all(folder);
}

TEST(Process, OfStderrApartTheEndIsKept) {
  ProcessOptions options;
  options.with_stderr = false;
  const Ended ended = run_process(shell("yes | head -c 100000 >&2; echo out; exec >&-; printf end >&2"), options);
  EXPECT_EQ(ended.out, "out\n");
  EXPECT_EQ(ended.err.size(), 4096u);
  EXPECT_TRUE(ended.err.ends_with("y\nend"));
}

TEST(Process, OneThatClosesItsOutputEndsByItself) {
  const Ended ended = run_process(shell("echo last; exec >&- 2>&-; sleep 0.2; exit 5"));
  EXPECT_EQ(ended.out, "last\n");
  EXPECT_EQ(ended.how(), "exit status 5");
}

TEST(Process, OneThatIsOverItsTimeIsKilledWithAllThatItStarted) {
  ProcessOptions options;
  options.seconds = 0.3;
  const Ended ended = run_process(shell("sleep 60 & echo $!; wait"), options);
  EXPECT_TRUE(ended.out_of_time);
  EXPECT_EQ(ended.how(), "out of time");
  EXPECT_TRUE(goes(ended.out.substr(0, ended.out.find('\n')))) << ended.out;
}

TEST(Process, IsKilledWhereItIsToStopAndWhereItsReaderThrows) {
  ProcessOptions options;
  options.stop = [] { return true; };
  EXPECT_TRUE(run_process(shell("sleep 60"), options).interrupted);
  std::string pid;
  options.stop = nullptr;
  options.on_output = [&](std::string_view text) {
    pid = text.substr(0, text.find('\n'));
    throw std::runtime_error("enough");
  };
  EXPECT_THROW(run_process(shell("echo $$; sleep 60"), options), std::runtime_error);
  EXPECT_TRUE(!pid.empty() && goes(pid)) << pid;
}

}  // namespace
}  // namespace attest
