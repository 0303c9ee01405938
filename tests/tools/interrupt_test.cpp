// What SIGINT, SIGTERM and SIGHUP leave of commands that do not save what they have: nothing, and the exit status says
// so.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"
#include "attest/problem/exit_code.h"
#include "output.h"
#include "run_attest.h"
#include "unfinished.h"

namespace attest::tools {
namespace {

class EndedBy : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Interrupt, EndedBy, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST_P(EndedBy, ALongCommandLeavesNothing) {
  const std::vector<std::string> large = {"--nheads", "64", "--seqlen-q", "4096", "--seqlen-k", "4096"};
  for (std::vector<std::string> arguments :
       {std::vector<std::string>{"reference", "--out", "."}, {"check", "--in-process", "--json", "c.json"}}) {
    arguments.insert(arguments.end(), large.begin(), large.end());
    const Folder folder;
    const Ran ran = run_attest(arguments, folder, {.signal_seconds = 0.5, .signal = GetParam()});
    EXPECT_EQ(ran.exit_code, exit_interrupted) << ran.err;
    EXPECT_EQ(ran.err, "attest: interrupted\n");
    EXPECT_TRUE(folder.files().empty()) << folder.files().front();
  }
}

TEST_P(EndedBy, ACheckInAWorkerReports) {
  const Folder folder;
  const Ran ran = run_attest(
      {"check", "--nheads", "64", "--seqlen-q", "4096", "--seqlen-k", "4096", "--json", "-", "--timeout", "10m"},
      folder, {.signal_seconds = 1, .signal = GetParam()});
  EXPECT_EQ(ran.exit_code, exit_interrupted) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out).at("interrupted"), true);
}

TEST_P(EndedBy, WhatIsWrittenMeanwhileIsDeleted) {
  const Folder folder;
  folder.write("old", "as it was");
  EXPECT_EXIT(
      {
        const EndOnSignals end_on_signals;
        const OutputFile first(folder.path() / "old");
        const OutputFile second(folder.path() / "new");
        const OutputFile::Staged one = first.stage("half");
        const OutputFile::Staged other = second.stage("half");
        if (folder.files().size() != 3) std::_Exit(1);
        std::raise(GetParam());
        std::_Exit(2);
      },
      testing::ExitedWithCode(exit_interrupted), "attest: interrupted");
  EXPECT_EQ(folder.files(), std::vector<std::string>{"old"});
  EXPECT_EQ(folder.read("old"), "as it was");
}

TEST(Interrupt, PastTheLimitOfAFileSizeWhatWasThereStays) {
  const Folder folder;
  folder.write("old", "as it was");
  EXPECT_EXIT(
      {
        const EndOnSignals end_on_signals;
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = 4096;
        ::setrlimit(RLIMIT_FSIZE, &limit);
        try {
          OutputFile(folder.path() / "old").write(std::string(8192, 'x'));
        } catch (const EnvironmentError& error) {
          std::fputs(error.what(), stderr);
          std::_Exit(exit_environment);
        }
        std::_Exit(0);
      },
      testing::ExitedWithCode(exit_environment), "old': cannot be written: File too large");
  EXPECT_EQ(folder.files(), std::vector<std::string>{"old"});
  EXPECT_EQ(folder.read("old"), "as it was");
}

TEST_P(EndedBy, FilesThatBelongTogetherAreAllRenamed) {
  const Folder folder;
  EXPECT_EXIT(
      {
        const EndOnSignals end_on_signals;
        const OutputFile first(folder.path() / "a");
        const OutputFile second(folder.path() / "b");
        OutputFile::Staged one = first.stage("1");
        OutputFile::Staged other = second.stage("2");
        {
          const HoldSignals together;
          one.commit();
          std::raise(GetParam());
          other.commit();
        }
        std::_Exit(2);
      },
      testing::ExitedWithCode(exit_interrupted), "attest: interrupted");
  EXPECT_EQ(folder.files(), (std::vector<std::string>{"a", "b"}));
}

TEST(Interrupt, AnInputIsNotReplaced) {
  const Folder folder;
  const std::vector<std::string> case_flags = {"--seqlen-q", "3", "--seqlen-k", "5", "--out", "."};
  std::vector<std::string> draw = case_flags;
  draw.insert(draw.begin(), "reference");
  ASSERT_EQ(run_attest(draw, folder).exit_code, 0);
  std::filesystem::rename(folder.path() / "q.npy", folder.path() / "lse.npy");
  const std::string before = folder.read("lse.npy");
  const Ran ran = run_attest({"reference", "--q", "lse.npy", "--k", "k.npy", "--v", "v.npy", "--out",
                              "../" + folder.path().filename().string()},
                             folder);
  EXPECT_EQ(ran.exit_code, exit_usage);
  EXPECT_EQ(ran.err, "attest: out: '../" + folder.path().filename().string() +
                         "/lse.npy' is read for --q, and would be replaced\n");
  EXPECT_EQ(folder.read("lse.npy"), before);

  folder.write("case.json", "{}");
  const Ran check = run_attest({"check", "--case", "case.json", "--mask", "./case.json"}, folder);
  EXPECT_EQ(check.exit_code, exit_usage);
  EXPECT_EQ(check.err, "attest: mask: './case.json' is read for --case, and would be replaced\n");
}

}  // namespace
}  // namespace attest::tools
