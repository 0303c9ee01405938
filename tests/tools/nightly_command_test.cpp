// attest nightly, merge, report and bench as a user runs them, and as cron finds them the morning after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_attest.h"

namespace attest::tools {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr, testing::StartsWith;

// With what was broken last night in `plant`: see planted_attest.cpp.
Ran run_planted(const std::string& plant, const std::string& line, const Folder& folder, Conduct conduct = {}) {
  plant.empty() ? ::unsetenv("ATTEST_PLANT") : ::setenv("ATTEST_PLANT", plant.c_str(), 1);
  conduct.program = ATTEST_PLANTED_PROGRAM;
  const Ran ran = run_attest(words(line), folder, conduct);
  ::unsetenv("ATTEST_PLANT");
  return ran;
}

Json red_named(const Json& night, const std::string& prefix) {
  for (const Json& red : night.at("red"))
    if (red.at("check").get<std::string>().starts_with(prefix)) return red;
  return {};
}

TEST(Nightly, AWholeNightOnTheCpu) {
  const Folder folder;
  const Ran ran = run_attest(words("nightly --out n --kernel cpu --time 10s --seed 3 --json night.json"), folder);
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  const Json night = Json::parse(folder.read("night.json"));
  std::vector<std::string> steps;
  double seconds = 0;
  for (const Json& step : night.at("steps")) {
    steps.push_back(step.at("name"));
    seconds += step.at("seconds").get<double>();
  }
  EXPECT_THAT(steps, testing::ElementsAre("doctor", "corpus", "tests", "time", "bytes", "sanitizer", "fuzz/cpu"));
  EXPECT_LT(seconds, 14) << "its budget, and what a block and a step may overrun it by";
  EXPECT_GT(night.at("fuzz").at(0).at("cases"), 50);
  EXPECT_EQ(night.at("fuzz").at(0).at("cases"), night.at("fuzz").at(0).at("first_uncovered_k"));
  EXPECT_TRUE(night.at("red").empty());
  EXPECT_GE(night.at("figures").size(), 3u);
  EXPECT_EQ(night, Json::parse(folder.read("n/nightly.json")));
  EXPECT_THAT(folder.read("n/index.html"), HasSubstr("Nothing is red"));
  EXPECT_THAT(folder.read("n/junit.xml"), HasSubstr("<testsuite name=\"fuzz\""));
  for (const std::string& file : folder.files()) EXPECT_EQ(file.find(".tmp"), std::string::npos) << file;

  for (const char* report : {"n/index.html", "n/junit.xml", "n/nightly.json"})
    std::filesystem::remove(folder.path() / report);
  const Ran again = run_attest(words("report n --json again.json"), folder);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Json::parse(folder.read("again.json")), night) << "all of it is in the history";
}

TEST(Nightly, OneThatCheckedNoKernelSaysSo) {
  const Folder folder;
  const Ran ran =
      run_attest(words("nightly --out n --kernel mutant:22-never-causal --steps doctor,corpus --time 5s"), folder);
  EXPECT_EQ(ran.exit_code, 77) << ran.out << ran.err;
  EXPECT_THAT(ran.out, testing::EndsWith("NOTHING CHECKED: n/index.html\n"));
  EXPECT_EQ(Json::parse(folder.read("n/nightly.json")).at("verdict"), "NOTHING CHECKED");
  EXPECT_THAT(folder.read("n/index.html"), HasSubstr("No kernel was checked"));
}

TEST(Nightly, APlantedBugAndAPlantedSlowDownTurnRed) {
  const Folder folder;
  const std::string night = "nightly --out n --kernel cpu --time 8s --threads 2 --json night.json ";
  const Ran good = run_planted("cpu:steady", night + "--seed 1 --steps time,fuzz", folder);
  ASSERT_EQ(good.exit_code, 0) << good.out << good.err;
  const std::string good_started = Json::parse(folder.read("night.json")).at("started");

  const Ran slow = run_planted("cpu:steady,slow", night + "--seed 2 --steps time", folder);
  EXPECT_EQ(slow.exit_code, 5) << slow.out << slow.err;
  Json json = Json::parse(folder.read("night.json"));
  const Json slower = red_named(json, "time/cpu/");
  ASSERT_FALSE(slower.is_null()) << slow.out;
  EXPECT_EQ(slower.at("state"), "regressed");
  EXPECT_EQ(slower.at("last_good"), good_started);
  EXPECT_THAT(slower.at("repro").get<std::string>(), StartsWith("attest bench --kernel cpu --"));
  std::string repro = slower.at("repro");
  const Ran repeated = run_planted("cpu:steady,slow", repro.substr(repro.find(' ') + 1) + " --json bench.json", folder);
  EXPECT_EQ(repeated.exit_code, 0) << repeated.err;
  EXPECT_EQ(Json::parse(folder.read("bench.json")).at("rows").at(0).at("seconds").size(), 9u);

  const Ran bug = run_planted("cpu:steady,bug", night + "--seed 3 --steps time,fuzz", folder);
  EXPECT_EQ(bug.exit_code, 1) << bug.out << bug.err;
  json = Json::parse(folder.read("night.json"));
  const Json wrong = red_named(json, "fuzz/cpu/");
  ASSERT_FALSE(wrong.is_null()) << bug.out;
  EXPECT_EQ(wrong.at("since"), json.at("started")) << "it was good on the first night";
  repro = wrong.at("repro");
  EXPECT_THAT(repro, StartsWith("attest check --kernel cpu --property "));
  EXPECT_THAT(bug.out, HasSubstr(repro));
  std::string page = folder.read("n/index.html");
  for (const char* tag : {"<span>", "</span>"})
    for (std::size_t at; (at = page.find(tag)) != std::string::npos;) page.erase(at, std::string_view(tag).size());
  EXPECT_THAT(page, HasSubstr("<pre>" + repro + "</pre>"));
  EXPECT_THAT(folder.read("n/junit.xml"), HasSubstr(repro));
  EXPECT_EQ(run_planted("cpu:steady,bug", repro.substr(repro.find(' ') + 1), folder).exit_code, 1);
  EXPECT_EQ(run_planted("", repro.substr(repro.find(' ') + 1), folder).exit_code, 0);

  // Its failures joined the corpus, which the next night replays first; now mended.
  const Ran mended = run_planted("cpu:steady", night + "--seed 4 --steps corpus,time", folder);
  EXPECT_EQ(mended.exit_code, 0) << mended.out;
  EXPECT_THAT(mended.out, HasSubstr("failures of before, 0 failed"));
}

TEST(Nightly, ANewBaselineAcceptsWhatIsSlower) {
  const Folder folder;
  const std::string night = "nightly --out n --kernel cpu --time 6s --steps time ";
  ASSERT_EQ(run_planted("cpu:steady", night + "--seed 1", folder).exit_code, 0);
  EXPECT_EQ(run_planted("cpu:steady,slow", night + "--seed 2", folder).exit_code, 5);
  EXPECT_EQ(run_planted("cpu:steady,slow", night + "--seed 3 --new-baseline", folder).exit_code, 0);
  EXPECT_EQ(run_planted("cpu:steady,slow", night + "--seed 4", folder).exit_code, 0);
}

TEST(Nightly, AKilledNightGoesOnAndLosesNoCase) {
  const Folder folder;
  const std::vector<std::string> line =
      words("nightly --out n --kernel cpu --time 8s --seed 7 --threads 1 --steps fuzz --json night.json");
  EXPECT_EQ(run_attest(line, folder, {.signal_seconds = 4, .signal = SIGKILL}).exit_code, 128 + SIGKILL);
  const Json killed = Json::parse(run_attest(words("merge n --json -"), folder).out);
  const auto cases = killed.at("campaigns").at(0).at("cases").get<std::uint64_t>();
  EXPECT_GT(cases, 0u) << "the blocks before the one that it was in";
  EXPECT_EQ(killed.at("unfinished"), Json({"n"}));

  const Ran ran = run_attest(line, folder);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("goes on with the night of"));
  const Json merged = Json::parse(run_attest(words("merge n --json -"), folder).out);
  const Json& campaign = merged.at("campaigns").at(0);
  EXPECT_GT(campaign.at("cases"), cases);
  EXPECT_EQ(campaign.at("cases"), campaign.at("prefix")) << "no hole";
  EXPECT_EQ(campaign.at("twice"), 0);
  EXPECT_TRUE(merged.at("unfinished").empty());

  const Ran next = run_attest(line, folder);
  EXPECT_EQ(next.err.find("goes on"), std::string::npos) << "it was finished: this is another night";
}

TEST(Nightly, AnInterruptedNightSavesWhatItHas) {
  const Folder folder;
  const Ran ran = run_attest(words("nightly --out n --kernel cpu --time 10m --steps fuzz --json night.json"), folder,
                             {.signal_seconds = 2, .signal = SIGTERM});
  EXPECT_EQ(ran.exit_code, 130) << ran.err;
  const Json night = Json::parse(folder.read("night.json"));
  EXPECT_EQ(night.at("finished"), "");
  EXPECT_GT(night.at("fuzz").at(0).at("cases"), 0);
  EXPECT_THAT(folder.read("n/index.html"), HasSubstr("the night is not over"));
}

TEST(Nightly, ShardsMergeToOneCampaign) {
  const Folder folder;
  for (const char* shard : {"0/2", "1/2"}) {
    const std::string out = std::string("shard-") + shard[0];
    const Ran ran = run_attest(
        words("nightly --kernel cpu --time 2s --seed 7 --steps fuzz --out " + out + " --shard " + shard), folder);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
  }
  const Json merged = Json::parse(run_attest(words("merge shard-0 shard-1 --json -"), folder).out);
  const Json& campaign = merged.at("campaigns").at(0);
  EXPECT_EQ(campaign.at("twice"), 0);
  EXPECT_TRUE(campaign.at("missing_shards").empty());
  const auto prefix = campaign.at("prefix").get<std::uint64_t>();
  ASSERT_GT(prefix, 0u);
  std::filesystem::create_directory(folder.path() / "one");
  const std::string cases = std::to_string(prefix);
  ASSERT_EQ(run_attest(words("fuzz --seed 7 --json one/fuzz.json --cases " + cases), folder).exit_code, 0);
  const Json one = Json::parse(run_attest(words("merge one --json -"), folder).out).at("campaigns").at(0);
  EXPECT_EQ(one.at("prefix"), prefix);
  EXPECT_EQ(one.at("in_prefix"), campaign.at("in_prefix"));

  const Json all = Json::parse(run_attest(words("merge shard-0 one shard-1 --json -"), folder).out);
  EXPECT_EQ(all.at("campaigns").at(0).at("twice"), prefix) << "the overlap is seen";
  EXPECT_EQ(all.at("campaigns").at(0).at("disagreeing"), 0);
  EXPECT_EQ(all.at("campaigns").at(0).at("cases"), campaign.at("cases")) << "and counts once";

  std::filesystem::create_directory(folder.path() / "shard-2");
  folder.write("shard-2/history.sqlite", "no database at all, but long enough to be looked at");
  const std::string script = ATTEST_MERGE_SHARDS " " ATTEST_PROGRAM " " + folder.path().string() + " > /dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(script.c_str())), 3);
  const Json damaged = Json::parse(folder.read("merged.json"));
  EXPECT_EQ(damaged.at("campaigns").at(0).at("cases"), campaign.at("cases")) << "the two others count";
  EXPECT_EQ(damaged.at("unreadable").at(0).at("source"), (folder.path() / "shard-2").string());
}

TEST(Nightly, OneAtATimeInAFolder) {
  const Folder folder;
  const std::vector<std::string> line = words("nightly --out n --kernel cpu --time 3s --steps fuzz");
  std::filesystem::create_directory(folder.path() / "n");
  folder.write("go.sh",
               std::string(ATTEST_PROGRAM) +
                   " nightly --out n --kernel cpu --time 20s --steps fuzz > /dev/null 2>&1 &\necho $! > pid\n");
  ASSERT_EQ(std::system(("cd " + folder.path().string() + " && sh go.sh && sleep 2").c_str()), 0);
  const Ran second = run_attest(line, folder);
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_EQ(second.err, "attest: 'n': another attest nightly runs in this folder\n");
  ASSERT_EQ(std::system(("kill -9 $(cat " + (folder.path() / "pid").string() + ")").c_str()), 0);
}

struct Refused {
  std::string line, says;
};

TEST(Nightly, RefusesInOneLine) {
  const Folder folder;
  folder.write("file", "");
  std::filesystem::create_directory(folder.path() / "empty");
  std::filesystem::create_directory(folder.path() / "broken");
  folder.write("broken/history.sqlite", "no database at all, but long enough to be looked at");
  for (const char* made : {"hollow", "other", "page-file/index.html", "corpus-file", "corpus-damaged/corpus"})
    std::filesystem::create_directories(folder.path() / made);
  folder.write("hollow/history.sqlite", "");
  folder.write("corpus-file/corpus", "");
  folder.write("corpus-damaged/corpus/a.json", "{");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder.path() / "other/history.sqlite").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "CREATE TABLE theirs (x)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  const Refused refused[] = {
      {"nightly", "attest: out: '' is no folder; the nights are kept in --out DIR\n"},
      {"nightly --out n --time 0s", "attest: time: '0s' "},
      {"nightly --out n --shard 2/2", "attest: shard: '2/2' "},
      {"nightly --out n --steps fuzz,dance", "attest: steps: 'dance' is none of doctor, corpus, tests, time"},
      {"nightly --out n --kernel nosuch", "attest: kernel: 'nosuch' "},
      {"nightly --out file --steps doctor", "attest: "},
      {"nightly --out broken --steps doctor", "attest: history: 'broken/history.sqlite' is no database of attest"},
      {"report", "attest: command line: no DIR is given to attest report\n"},
      {"report empty", "attest: history: 'empty/history.sqlite' is no file"},
      {"report broken", "attest: history: 'broken/history.sqlite' is no database of attest"},
      {"report empty broken", "attest: "},
      {"report hollow", "attest: history: 'hollow/history.sqlite' is empty: no night is recorded\n"},
      {"merge hollow", "attest: history: 'hollow/history.sqlite' is empty: no night is recorded\n"},
      {"report other", "attest: history: 'other/history.sqlite' is a database of another program\n"},
      {"nightly --out other", "attest: history: 'other/history.sqlite' is a database of another program\n"},
      {"nightly --out page-file", "attest: 'page-file/index.html': cannot be written: Is a directory\n"},
      {"nightly --out corpus-file", "attest: corpus: 'corpus-file/corpus' is no folder\n"},
      {"nightly --out corpus-damaged", "attest: corpus: 'corpus-damaged/corpus/a.json' file: 1 bytes are not JSON"},
      {"nightly --out n --shard 0/1000000001",
       "attest: shard: 0/1000000001 is not I/N with 0 <= I < N <= 1000000000\n"},
      {"fuzz --shard 0/1000000001", "attest: shard: 0/1000000001 is not I/N with 0 <= I < N <= 1000000000\n"},
      {"merge", "attest: command line: no DIR is given to attest merge\n"},
      {"merge nowhere", "attest: dir: 'nowhere' is no folder\n"},
      {"merge empty", "attest: dir: 'empty' has neither a history.sqlite nor a report of attest fuzz --json\n"},
      {"bench --repeats 0", "attest: repeats: 0 is outside 1 to 1000\n"},
  };
  for (const auto& [line, says] : refused) {
    const Ran ran = run_attest(words(line), folder);
    EXPECT_TRUE(ran.exit_code == 2 || (ran.exit_code == 3 && line.find("file") != std::string::npos))
        << line << ran.exit_code;
    EXPECT_EQ(ran.err.find("nightly:"), std::string::npos) << line << " has begun";
    EXPECT_THAT(ran.err, StartsWith(says)) << line;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << line << ": " << ran.err;
  }
  EXPECT_EQ(folder.read("hollow/history.sqlite"), "") << "nothing was written into it";
}

TEST(Bench, TimesTheCaseThatItIsGiven) {
  const Folder folder;
  const Ran ran = run_attest(words("bench --kernel cpu --repeats 3 --seqlen-q 8 --seqlen-k 8 --json -"), folder);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Json row = Json::parse(ran.out).at("rows").at(0);
  EXPECT_EQ(row.at("case").at("seqlen_q"), 8);
  EXPECT_EQ(row.at("seconds").size(), 3u);
  EXPECT_GT(row.at("seconds").at(0), 0);
}

TEST(Bench, AKernelThatThrowsHasCrashed) {
  const Folder folder;
  const Ran bench = run_planted("cpu:throw", "bench --kernel cpu --seqlen-q 8 --seqlen-k 8", folder);
  EXPECT_EQ(bench.exit_code, 4);
  EXPECT_THAT(bench.out, HasSubstr("the kernel fails: planted; attest bench --kernel cpu "));
  const Ran night =
      run_planted("cpu:throw", "nightly --out n --kernel cpu --time 6s --steps time --json night.json", folder);
  EXPECT_EQ(night.exit_code, 4) << night.out << night.err;
  const Json crashed = red_named(Json::parse(folder.read("night.json")), "time/cpu");
  EXPECT_EQ(crashed.at("state"), "crashed");
  EXPECT_THAT(crashed.at("repro").get<std::string>(), StartsWith("attest bench --kernel cpu --batch 1"));
}

// An older one, which tonight's steps do not read: the reports after them would.
TEST(Nightly, ADamagedNightIsToldBeforeTimeIsSpent) {
  const Folder folder;
  const auto night = [&](const std::string& seed) {
    return run_attest(words("nightly --out n --kernel cpu --steps sanitizer --time 1s --seed " + seed), folder);
  };
  ASSERT_EQ(night("1").exit_code, 77) << "the sanitizer has no GPU here, or no kernel that runs there";
  ASSERT_EQ(night("2").exit_code, 77);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder.path() / "n/history.sqlite").c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "UPDATE night SET shard_count = 0 WHERE id = 1", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  const std::string why = "attest: history: shard_index, shard_count '0/0' is not I/N with 0 <= I < N\n";
  for (const Ran& ran : {night("3"), run_attest(words("report n"), folder)}) {
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_EQ(ran.err, why) << "and no step began";
  }
}

}  // namespace
}  // namespace attest::tools
