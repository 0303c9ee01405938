// What fuzz, check and mutants promise on the command line: exit statuses, lines that reproduce, shards, interruption.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
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
  EXPECT_EQ(json.at("passed"), 60);
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

TEST(Fuzz, InterruptedSavesWhatItDid) {
  const Folder folder;
  const Ran ran = run_attest({"fuzz", "--time", "10m", "--json", "fuzz.json"}, folder, 1.5);
  EXPECT_EQ(ran.exit_code, 130) << ran.err;
  const Json json = Json::parse(folder.read("fuzz.json"));
  EXPECT_EQ(json.at("stopped"), "interrupted");
  EXPECT_EQ(json.at("cases"), json.at("passed"));
}

TEST(Check, ExitStatusIsTheVerdict) {
  EXPECT_EQ(json_of({"check", "--seqlen-q", "0"}, 0).at("failed"), 0);
  EXPECT_GT(json_of({"check", "--kernel", "mutant:86-lse-in-base-2"}, 1).at("failed"), 0);
  EXPECT_TRUE(json_of({"check", "--property", "gqa"}, 77).at("verdicts").empty()) << "no shared key heads here";
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
  EXPECT_EQ(json_of({"mutants", "--only", "20-*"}, 0).at("caught"), 1);
  const Json json = json_of({"mutants", "--only", "29-*", "--cases", "1"}, 1);  // a rare one, and one case to find it
  EXPECT_EQ(json.at("survived"), 1);
}

}  // namespace
}  // namespace attest::tools
