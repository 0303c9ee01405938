// What fuzz, check and mutants promise on the command line: exit statuses, lines that reproduce, shards, interruption.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "run_attest.h"

namespace attest::tools {
namespace {

using Json = nlohmann::json;

Json json_of(const std::vector<std::string>& arguments, int exit_code) {
  const Folder folder;
  std::vector<std::string> with_json = arguments;
  with_json.insert(with_json.end(), {"--json", "-"});
  const Ran ran = run_attest(with_json, folder);
  EXPECT_EQ(ran.exit_code, exit_code) << ran.err;
  return Json::parse(ran.out);
}

TEST(Fuzz, ARightKernelPasses) {
  const Json json = json_of({"fuzz", "--kernel", "cpu", "--cases", "60", "--seed", "5"}, 0);
  EXPECT_EQ(json.at("cases"), 60);
  EXPECT_GT(json.at("passed"), 50);
  EXPECT_EQ(json.at("passed").get<int>() + json.at("unsupported").get<int>(), 60);
  EXPECT_EQ(json.at("failed"), 0);
  EXPECT_EQ(json.at("seed"), 5);
  EXPECT_TRUE(json.at("failures").empty());
}

TEST(Fuzz, ReproLinesReproduceWhenPasted) {
  const Json json = json_of({"fuzz", "--kernel", "mutant:22-never-causal", "--cases", "60"}, 1);
  EXPECT_GT(json.at("failed"), 0);
  ASSERT_FALSE(json.at("failures").empty());
  for (const Json& failure : json.at("failures")) {
    std::vector<std::string> line = words(failure.at("repro"));
    ASSERT_EQ(line.at(0), "attest");
    line.erase(line.begin());
    const Json check = json_of(line, 1);
    ASSERT_EQ(check.at("verdicts").size(), 1u);
    EXPECT_EQ(check.at("verdicts")[0].at("property"), failure.at("property"));
    EXPECT_EQ(check.at("verdicts")[0].at("status"), failure.at("status"));
    EXPECT_EQ(check.at("case"), failure.at("case"));
    const Json& error = failure.at("error_over_budget");
    EXPECT_TRUE(error.is_null() || error > 1) << error.dump() << "; null is what JSON has for infinity";
  }
}

TEST(Fuzz, ShardsAreTheCampaign) {
  std::int64_t cases = 0;
  for (const char* shard : {"0/3", "1/3", "2/3"})
    cases += json_of({"fuzz", "--cases", "40", "--shard", shard}, 0).at("cases").get<std::int64_t>();
  EXPECT_EQ(cases, 40);
}

TEST(Fuzz, TheSameSeedIsTheSameCampaign) {
  const std::vector<std::string> arguments = {"fuzz", "--kernel", "mutant:20-causal-without-offset", "--cases", "40"};
  Json first = json_of(arguments, 1), second = json_of(arguments, 1);
  for (Json* json : {&first, &second})
    for (const char* clock : {"seconds", "cases_per_second"}) json->erase(clock);
  EXPECT_EQ(first, second);
}

class Interrupted : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Fuzz, Interrupted, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST_P(Interrupted, SavesWhatItDid) {
  const Folder folder;
  const Ran ran = run_attest({"fuzz", "--time", "10m", "--json", "fuzz.json", "--junit", "fuzz.xml", "--corpus", "c"},
                             folder, {.signal_seconds = 1.5, .signal = GetParam()});
  EXPECT_EQ(ran.exit_code, 130) << ran.err;
  const Json json = Json::parse(folder.read("fuzz.json"));
  EXPECT_EQ(json.at("stopped"), "interrupted");
  EXPECT_EQ(json.at("cases").get<int>(), json.at("passed").get<int>() + json.at("unsupported").get<int>())
      << "no worker was hit by the signal";
  EXPECT_GT(json.at("cases"), 0);
  EXPECT_NE(folder.read("fuzz.xml").find("</testsuites>"), std::string::npos);
}

// The processes whose parent this is.
std::vector<int> children_of(int parent) {
  std::vector<int> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string line;
    std::getline(stat, line);
    if (line.find(") ") == std::string::npos) continue;
    std::istringstream rest(line.substr(line.rfind(") ") + 2));  // "S 1234 ..."
    std::string state;
    int ppid = 0;
    if (rest >> state >> ppid && ppid == parent && state != "Z") children.push_back(std::stoi(name));
  }
  return children;
}

TEST(Fuzz, WorkersDieWithAParentThatIsKilled) {
  const Folder folder;
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    ::execl(ATTEST_PROGRAM, "attest", "fuzz", "--time", "10m", "--threads", "2", "--json", "/dev/null", nullptr);
    ::_exit(127);
  }
  std::vector<int> workers;
  for (int i = 0; i < 100 && workers.size() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    workers = children_of(parent);
  }
  EXPECT_EQ(workers.size(), 2u);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  for (const int worker : workers) {
    bool gone = false;
    for (int i = 0; i < 100 && !gone; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::ifstream stat("/proc/" + std::to_string(worker) + "/stat");
      std::string line;
      gone = !std::getline(stat, line) || line.find(") Z") != std::string::npos;
    }
    EXPECT_TRUE(gone) << worker;
  }
}

TEST(Fuzz, TheCorpusIsReplayedAndJUnitWritten) {
  const Folder folder;
  const std::vector<std::string> wrong = {
      "fuzz", "--kernel", "mutant:86-lse-in-base-2", "--cases", "20", "--corpus", "corpus", "--json", "a.json"};
  EXPECT_EQ(run_attest(wrong, folder).exit_code, 1);
  const Json first = Json::parse(folder.read("a.json"));
  EXPECT_EQ(first.at("corpus").at("replayed"), 0);
  EXPECT_GT(first.at("corpus").at("added"), 0);
  const Ran right =
      run_attest({"fuzz", "--cases", "20", "--corpus", "corpus", "--junit", "b.xml", "--json", "b.json"}, folder);
  EXPECT_EQ(right.exit_code, 0) << right.out;
  const Json second = Json::parse(folder.read("b.json"));
  EXPECT_EQ(second.at("corpus").at("replayed"), first.at("corpus").at("added"));
  EXPECT_EQ(second.at("corpus").at("failed"), 0);
  EXPECT_EQ(second.at("failed"), 0);
  EXPECT_EQ(second.at("statuses").at("passed").get<int>() + second.at("unsupported").get<int>(), 20);
  EXPECT_NE(folder.read("b.xml").find("<testcase classname=\"attest.cpu\" name=\"reference\""), std::string::npos);

  folder.write("corpus/new.json", R"({"schema": "attest/corpus/9"})");
  const Ran newer = run_attest({"fuzz", "--cases", "20", "--corpus", "corpus", "--json", "c.json"}, folder);
  EXPECT_EQ(newer.exit_code, 2);
  EXPECT_EQ(
      newer.err,
      "attest: corpus: 'corpus/new.json' schema: \"attest/corpus/9\" is not 'attest/corpus/1', the newest that this "
      "version reads\n");
}

TEST(Fuzz, AClosedStderrIsNoCrash) {
  const Folder folder;
  const Conduct closed{.closed_stderr = true};
  EXPECT_EQ(run_attest({"fuzz", "--cases", "30"}, folder, closed).exit_code, 0);
  EXPECT_EQ(run_attest({"fuzz", "--cases", "none"}, folder, closed).exit_code, 2);
  EXPECT_EQ(run_attest({"no-such-command"}, folder, closed).exit_code, 2);
  EXPECT_EQ(run_attest({"check", "--kernel", "mutant:86-lse-in-base-2"}, folder, closed).exit_code, 1);
}

TEST(Fuzz, AWorkerIsNoCommand) {
  const Folder folder;
  const Ran ran = run_attest({"__worker"}, folder);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(run_attest({"--help"}, folder).out.find("__worker"), std::string::npos);
}

TEST(Check, ExitStatusIsTheVerdict) {
  EXPECT_EQ(json_of({"check", "--seqlen-q", "0"}, 0).at("failed"), 0);
  EXPECT_GT(json_of({"check", "--kernel", "mutant:86-lse-in-base-2"}, 1).at("failed"), 0);
  EXPECT_TRUE(json_of({"check", "--property", "gqa"}, 77).at("verdicts").empty()) << "no shared key heads here";
  EXPECT_GT(json_of({"check", "--kernel", "mutant:86-lse-in-base-2", "--in-process"}, 1).at("failed"), 0);
  const Json hung = json_of({"check", "--seqlen-q", "4096", "--seqlen-k", "4096", "--timeout", "1ms"}, 4);
  EXPECT_EQ(hung.at("verdicts").at(0).at("status"), "hung");
  const Json dry = json_of({"check", "--kernel", "mutant:86-lse-in-base-2", "--dry-run"}, 0);
  EXPECT_TRUE(dry.at("dry_run"));
}

TEST(Check, ListsTheWorstElements) {
  const Folder folder;
  const std::vector<std::string> arguments = {"check", "--seqlen-q", "4", "--seqlen-k", "9", "--property", "reference"};
  std::vector<std::string> with_diffs = arguments;
  with_diffs.insert(with_diffs.end(), {"--diffs", "3"});
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  EXPECT_EQ(lines(run_attest(with_diffs, folder).out), lines(run_attest(arguments, folder).out) + 3);
}

TEST(Mutants, AnUncaughtOneFails) {
  EXPECT_EQ(json_of({"mutants", "--only", "20-*"}, 0).at("caught"), 2);
  const Json json = json_of({"mutants", "--only", "29-*", "--cases", "1"}, 1);  // a rare one, and one case to find it
  EXPECT_EQ(json.at("survived"), 1);
}

TEST(Mutants, AGlobThatMatchesNoneIsRefusedWithAFewIds) {
  const Folder folder;
  const Ran ran = run_attest({"mutants", "--only", "nosuch*"}, folder);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(ran.err.starts_with("attest: only: 'nosuch*' matches none of ")) << ran.err;
  EXPECT_LT(ran.err.size(), 200u) << ran.err;
}

}  // namespace
}  // namespace attest::tools
