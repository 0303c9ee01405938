#include "attest/nightly/history.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "attest/nightly/regression.h"
#include "attest/problem/error.h"
#include "attest/problem/process.h"
#include "nights.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre, testing::HasSubstr;

class HistoryTest : public InItsOwnFolder {
 protected:
  void execute(const char* sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((folder / History::file_name).c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  std::string refusal(bool must_exist = true) const {
    try {
      const History history(folder, must_exist);
      for (const std::int64_t id : history.ids()) history.load(id);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }
};

const Series x{"time/cpu/x", "s", {}, false};

TEST_F(HistoryTest, GivesBackWhatWasRecorded) {
  History history(folder);
  Night night = night_of("2026-11-20");
  night.campaign = {~0ull, 2, 3, 4};
  night.kernels = {"cpu", "sm80 \"odd\" \xFF name"};
  night.id = history.begin(night);
  const Part part{{"fuzz/cpu", 1.5, "a note"},
                  {{"fuzz/cpu/gqa", CheckState::wrong, "it's \"wrong\"", "attest check", false}},
                  {{"time/cpu/x", "s", {1e-3, 2e-300}, true}},
                  {{"cpu", ~0ull - 8, {Status::passed, Status::passed, Status::hung}}}};
  history.record(night.id, part);
  history.record(night.id, {{"fuzz/cpu", 2, "later"}, {}, {}, {}});
  const Night loaded = history.load(night.id);
  EXPECT_EQ(loaded.machine, night.machine);
  EXPECT_EQ(loaded.campaign, night.campaign);
  EXPECT_EQ(loaded.checks, part.checks);
  EXPECT_EQ(loaded.series, part.series);
  EXPECT_EQ(loaded.covered, part.covered);
  EXPECT_THAT(loaded.steps, ElementsAre(Step{"fuzz/cpu", 3.5, "later"})) << "seconds of its parts are added";
  EXPECT_EQ(loaded.finished, "");
  EXPECT_EQ(loaded.exit_code(), exit_kernel_wrong);
}

TEST_F(HistoryTest, ACheckKeepsItsWorstState) {
  History history(folder);
  const std::int64_t id = history.begin(night_of("2026-11-20"));
  for (const CheckState state : {CheckState::passed, CheckState::crashed, CheckState::wrong, CheckState::passed})
    history.record(id, {{"fuzz/cpu", 1, ""}, {{"c", state, std::string(to_string(state)), ""}}, {}, {}});
  EXPECT_THAT(history.load(id).checks, ElementsAre(Check{"c", CheckState::crashed, "crashed", ""}));
}

TEST_F(HistoryTest, APartIsRecordedWholeOrNotAtAll) {
  History history(folder);
  const std::int64_t id = history.begin(night_of("2026-11-20"));
  const Covered block{"cpu", 0, {Status::passed}};
  history.record(id, {{"fuzz/cpu", 1, "first"}, {}, {}, {block}});
  const Part again{{"fuzz/cpu", 1, "second"}, {{"c", CheckState::passed, "", ""}}, {{"s", "s", {1}, false}}, {block}};
  EXPECT_THROW(history.record(id, again), InvalidInput) << "a block twice";
  const Night night = history.load(id);
  EXPECT_THAT(night.steps, ElementsAre(Step{"fuzz/cpu", 1, "first"}));
  EXPECT_TRUE(night.checks.empty());
  EXPECT_TRUE(night.series.empty());
}

// A writer that is killed at any moment leaves what it committed, and nothing half.
TEST_F(HistoryTest, SurvivesAKillInTheMiddleOfAWrite) {
  std::int64_t id = 0;
  {
    History history(folder);
    id = history.begin(night_of("2026-11-20"));
  }
  std::size_t parts = 0;
  for (int round = 0; round < 12; ++round) {
    const pid_t writer = ::fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) {
      History history(folder);
      const std::size_t n = history.load(id).covered.size();
      for (std::uint64_t k = n;; ++k) {
        const std::string name = std::to_string(k);
        history.record(id, {{"step" + name, 1, ""},
                            {{"check" + name, CheckState::passed, std::string(20'000, 'x'), ""}},
                            {{"series" + name, "s", std::vector<double>(500, 1.0), false}},
                            {{"cpu", k, {Status::passed}}}});
      }
    }
    ::usleep(static_cast<useconds_t>(30'000 + 3'700 * round));
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    const History history(folder);
    const Night night = history.load(id);
    EXPECT_EQ(night.steps.size(), night.covered.size());
    EXPECT_EQ(night.checks.size(), night.covered.size());
    EXPECT_EQ(night.series.size(), night.covered.size());
    EXPECT_GE(night.covered.size(), parts) << "what was committed is gone";
    parts = night.covered.size();
  }
  EXPECT_GT(parts, 12u);
}

TEST_F(HistoryTest, FiguresAreThoseOfTheSameMachineSinceTheBaseline) {
  History history(folder);
  add_night(history, night_of("2026-11-01"), CheckState::passed, {1});
  add_night(history, night_of("2026-11-02"), CheckState::passed, {2}, true);
  add_night(history, night_of("2026-11-03", "GPU B"), CheckState::passed, {3});
  add_night(history, night_of("2026-11-04"), CheckState::regressed, {4});
  const std::int64_t id = add_night(history, night_of("2026-11-05"), CheckState::passed, {5});
  const std::vector<Figures> before = history.before(id, x, 20);
  ASSERT_EQ(before.size(), 2u);
  EXPECT_THAT(before[0].values, ElementsAre(2));
  EXPECT_FALSE(before[0].red);
  EXPECT_THAT(before[1].values, ElementsAre(4));
  EXPECT_TRUE(before[1].red);
  EXPECT_EQ(history.before(id, x, 1).size(), 2u) << "one that is not red, and the red one after it";
}

TEST_F(HistoryTest, FiguresOfAnotherClockAreNoBaseline) {
  History history(folder);
  add_night(history, night_of("2026-11-01"), CheckState::passed, {1});
  const std::int64_t id = history.begin(night_of("2026-11-02"));
  EXPECT_EQ(history.before(id, x, 20).size(), 1U);
  EXPECT_TRUE(history.before(id, {x.name, cpu_seconds_unit, {}, false}, 20).empty());
}

TEST_F(HistoryTest, HoweverLongAFigureIsRedItsBaselineStays) {
  History history(folder);
  const auto values = [](double middle) { return std::vector<double>(9, middle); };
  const auto dated = [](const char* month, int day) { return month + std::to_string(100 + day).substr(1); };
  const std::string name = "time/cpu/x";
  for (int day = 1; day <= 25; ++day)
    add_night(history, night_of(dated("2026-01-", day)), CheckState::passed, values(1));
  for (int day = 1; day <= 25; ++day) {
    const std::int64_t id = history.begin(night_of(dated("2026-02-", day)));
    const Series slow{name, "s", values(2), false};
    const std::vector<Figures> before = history.before(id, slow, baseline_nights);
    const Judgement judgement = judge(slow, before, device_time_gate);
    ASSERT_TRUE(judgement.worse) << day << ": " << judgement.words;
    EXPECT_EQ(judgement.baseline, 1);
    EXPECT_EQ(before.size(), static_cast<std::size_t>(baseline_nights + day - 1));
    history.record(id, {{"time", 1, ""}, {{name, CheckState::regressed, "", ""}}, {slow}, {}});
  }
}

TEST_F(HistoryTest, ANewBaselineOfOneMachineLeavesTheOthers) {
  History history(folder);
  add_night(history, night_of("2026-11-01", "GPU B"), CheckState::passed, {1});
  add_night(history, night_of("2026-11-02"), CheckState::passed, {2});
  add_night(history, night_of("2026-11-03"), CheckState::passed, {3}, true);
  const std::vector<Figures> b = history.before(history.begin(night_of("2026-11-04", "GPU B")), x, 20);
  ASSERT_EQ(b.size(), 1u);
  EXPECT_THAT(b[0].values, ElementsAre(1));
  const std::vector<Figures> a = history.before(history.begin(night_of("2026-11-04")), x, 20);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_THAT(a[0].values, ElementsAre(3));
}

TEST_F(HistoryTest, RedSinceTheFirstNightWithoutABreak) {
  History history(folder);
  add_night(history, night_of("2026-11-01"), CheckState::wrong);
  add_night(history, night_of("2026-11-02"), CheckState::passed);
  add_night(history, night_of("2026-11-03"), CheckState::wrong);
  add_night(history, night_of("2026-11-04"), CheckState::skipped);
  add_night(history, night_of("2026-11-05", "GPU B"), CheckState::passed);
  const std::int64_t id = add_night(history, night_of("2026-11-06"), CheckState::wrong);
  const RedSince since = history.red_since(id, "time/cpu/x");
  EXPECT_EQ(since.first, "2026-11-03T01:00:00Z");
  EXPECT_EQ(since.last_good, "2026-11-02T01:00:00Z");
  EXPECT_EQ(since.nights, 2);
}

TEST_F(HistoryTest, WhatIsNoHistoryIsRefusedInOneLine) {
  EXPECT_THAT(refusal(), HasSubstr("history.sqlite' is no file"));
  std::ofstream(folder / History::file_name) << "this is no database, though it is long enough to look at";
  EXPECT_THAT(refusal(), HasSubstr("history.sqlite' is no database of attest, or damaged"));
  fs::remove(folder / History::file_name);
  std::ofstream(folder / "file") << "x";
  EXPECT_THROW(History(folder / "file"), InvalidInput);
}

TEST_F(HistoryTest, ADatabaseOfAnotherProgramStaysAsItIs) {
  const auto bytes = [&] {
    std::ifstream file(folder / History::file_name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  execute("CREATE TABLE other (x)");
  for (const char* const version : {"0", "1", "2", "77"}) {
    execute(fmt::format("PRAGMA user_version = {}", version).c_str());
    const std::string before = bytes();
    for (const bool must_exist : {true, false})
      EXPECT_THAT(refusal(must_exist), HasSubstr("history.sqlite' is a database of another program")) << version;
    EXPECT_EQ(bytes(), before) << version;
    EXPECT_FALSE(fs::exists(folder / "history.sqlite-wal")) << version;
  }
}

TEST_F(HistoryTest, ANewerOneIsRefused) {
  { const History made(folder); }
  execute("PRAGMA user_version = 9");
  EXPECT_THAT(refusal(), HasSubstr("version 9 is newer than 2"));
}

// A night of 2026-11-22, as docs/results keeps it: its file is of version 1.
TEST_F(HistoryTest, AnOlderOneIsBroughtUpToDate) {
  const Ended unpacked = run_process({"xz", "-dc", OLD_HISTORY});
  ASSERT_TRUE(unpacked.good()) << "xz: " << unpacked.how();
  std::ofstream(folder / History::file_name) << unpacked.out;
  std::vector<Check> before;
  for (int opened = 0; opened < 2; ++opened) {  // a second time it is of this version
    const History history(folder, true);
    const Night night = history.load(history.ids().back());
    EXPECT_TRUE(night.checked_a_kernel());
    EXPECT_GT(night.checks.size(), 20u);
    int of_none = 0;
    for (const Check& check : night.checks) {
      EXPECT_EQ(check.of_a_kernel, check.name != "doctor" && !check.name.starts_with("bytes/predicted/")) << check.name;
      of_none += !check.of_a_kernel;
    }
    EXPECT_GT(of_none, 1);
    if (opened == 0) before = night.checks;
    EXPECT_EQ(night.checks, before);
  }
  History history(folder);
  const std::int64_t id = history.begin(night_of("2026-11-23"));
  history.record(id, {{"doctor", 1, ""}, {{"anything", CheckState::passed, "", "", false}}, {}, {}});
  EXPECT_FALSE(history.load(id).checked_a_kernel());
  EXPECT_EQ(history.load(id).exit_code(), exit_unsupported);
}

// What no night has, whatever its type: each would end the report that divides by it, or cuts words out of it.
TEST_F(HistoryTest, DamagedValuesAreNamed) {
  std::int64_t newest = 0;
  {
    History history(folder);
    add_night(history, night_of("2026-11-01"), CheckState::wrong, {1});
    newest = add_night(history, night_of("2026-11-02"), CheckState::wrong, {1});
  }
  const struct {
    const char *damage, *repair, *words;
  } rows[] = {
      {"night SET shard_count = 0", "night SET shard_count = 1",
       "history: shard_index, shard_count '0/0' is not I/N with 0 <= I < N"},
      {"night SET shard_index = 1", "night SET shard_index = 0", "shard_index, shard_count '1/1' is not I/N"},
      {"night SET started = ''", "night SET started = '2026-11-01T01:00:00Z'",
       "history: started '' is no time such as 2026-01-31T23:59:59Z"},
      {"night SET started = 'zz{'", "night SET started = '2026-11-01T01:00:00Z'", "started 'zz{' is no time"},
      {"night SET finished = '2026-11-01'", "night SET finished = ''", "finished '2026-11-01' is no time"},
      {"step SET seconds = 9e999", "step SET seconds = 1", "history: seconds 'inf' is no finite number from 0"},
      {"step SET seconds = -1", "step SET seconds = 1", "seconds '-1' is no finite number"},
      {"series SET figures = '[]'", "series SET figures = '[1]'", "history: figures '[]' has none"},
  };
  for (const auto& [damage, repair, words] : rows) {
    const std::string update = "UPDATE ", first = " WHERE rowid = 1";
    execute((update + damage + first).c_str());
    EXPECT_THAT(refusal(), HasSubstr(words));
    execute((update + repair + first).c_str());
    EXPECT_EQ(refusal(), "");
  }
  const History history(folder);
  execute("UPDATE night SET started = '' WHERE id = 1; UPDATE series SET figures = '[]' WHERE night = 1");
  EXPECT_THROW(history.before(newest, x, 20), InvalidInput);
  EXPECT_THROW(history.red_since(newest, x.name), InvalidInput);
}

TEST_F(HistoryTest, DamagedFieldsAreNamed) {
  {
    History history(folder);
    add_night(history, night_of("2026-11-01"), CheckState::passed, {1});
  }
  execute("UPDATE series SET figures = '[1, \"x\"]'");
  EXPECT_THAT(refusal(), HasSubstr("figures '[1, \"x\"]' is no list of its kind"));
  execute("UPDATE series SET figures = '[1]'; UPDATE verdict SET state = 'blue'");
  EXPECT_THAT(refusal(), HasSubstr("state: 'blue' is no state of a check"));
  execute("UPDATE verdict SET state = 'passed'; UPDATE night SET seed = '-1'");
  EXPECT_THAT(refusal(), HasSubstr("seed '-1' is no integer"));
  execute("UPDATE night SET seed = '1'; INSERT INTO covered VALUES (1, 'cpu', '0', '5q')");
  EXPECT_THAT(refusal(), HasSubstr("outcomes: '5q' is no run"));
  execute("DROP TABLE covered");
  EXPECT_THAT(refusal(), HasSubstr("has not the tables of attest"));
}

}  // namespace
}  // namespace attest
