#include "attest/fuzz/corpus.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "attest/fuzz/campaign.h"
#include "attest/problem/error.h"
#include "naive_kernel.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CorpusTest : public testing::Test {
 protected:
  CorpusTest() {
    std::string name = (fs::temp_directory_path() / "attest_corpus_XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~CorpusTest() override { fs::remove_all(folder_); }

  CampaignOptions options(std::uint64_t cases) const {
    CampaignOptions options;
    options.kernel = "naive";
    options.cases = cases;
    options.budget = {64, 1 << 14, 512};
    options.corpus = folder_.string();
    options.max_failed = 1'000'000;
    return options;
  }
  std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

KernelFactory naive(Fault fault) {
  return [fault] { return std::make_unique<NaiveKernel>(fault); };
}

CorpusEntry an_entry() {
  CorpusEntry entry;
  entry.the_case.problem.seqlen_k = 77;
  entry.property = "zero_q";
  entry.kernel = "cpu";
  entry.generator_version = 1;
  entry.found = utc_now();
  return entry;
}

// Sleeps on some files longer than on others, so that threads are through with their shares at different times.
class SleepyKernel : public NaiveKernel {
 public:
  explicit SleepyKernel(Fault fault) : NaiveKernel(fault) {}
  RunReport run(const Case& c, const ForwardArgs& args) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(c.problem.seqlen_k % 3 == 0 ? 30 : 1));
    return NaiveKernel::run(c, args);
  }
};

TEST_F(CorpusTest, AnEntryReadsBackAndHasItsFailuresName) {
  const CorpusEntry entry = an_entry();
  EXPECT_EQ(corpus_entry_from_json("f", to_json(entry).dump()), entry);
  CorpusEntry later = entry;
  later.found = "2030-01-01T00:00:00Z", later.kernel = "other";
  EXPECT_EQ(corpus_file_name(later), corpus_file_name(entry)) << "the same failure";
  later.property = "reference";
  EXPECT_NE(corpus_file_name(later), corpus_file_name(entry));
  later = entry;
  later.the_case.seed = 1;
  EXPECT_NE(corpus_file_name(later), corpus_file_name(entry));
}

TEST_F(CorpusTest, AFailureJoinsOnceThoughMoreWriteAtTheSameTime) {
  const Corpus corpus(folder_);
  std::vector<std::jthread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        CorpusEntry entry = an_entry();
        entry.the_case.seed = seed;
        corpus.add(entry);
      }
    });
  writers.clear();
  EXPECT_EQ(num_files(), 20u) << "and nothing half written";
  EXPECT_EQ(Corpus(folder_).files().size(), 20u);
  EXPECT_FALSE(corpus.add(an_entry()));
}

TEST_F(CorpusTest, EachFailingCaseJoinsAndFailsAgainFirst) {
  const CampaignOptions o = options(60);
  const CampaignResult first = run_campaign(naive(Fault::head_modulo), o);
  ASSERT_GT(first.failed, 0u);
  EXPECT_EQ(first.corpus.replayed, 0u);
  EXPECT_EQ(first.corpus.added, num_files());
  EXPECT_GE(num_files(), first.failures.size());

  const CampaignResult again = run_campaign(naive(Fault::head_modulo), options(1));
  EXPECT_EQ(again.corpus.replayed, first.corpus.added);
  EXPECT_EQ(again.corpus.failed, first.corpus.added);
  EXPECT_EQ(again.corpus.added, 0u) << "they are in it";
  ASSERT_FALSE(again.failures.empty());
  EXPECT_FALSE(again.failures[0].corpus_file.empty());
  const nlohmann::ordered_json json = to_json(options(1), again);
  EXPECT_EQ(json["corpus"]["replayed"], first.corpus.added);
  EXPECT_EQ(json["corpus"]["failed"], first.corpus.added);
  EXPECT_EQ(json["failures"][0]["corpus_file"], again.failures[0].corpus_file);

  const CampaignResult mended = run_campaign(naive(Fault::none), options(1));
  EXPECT_EQ(mended.corpus.replayed, first.corpus.added);
  EXPECT_EQ(mended.corpus.failed, 0u);
}

TEST_F(CorpusTest, WhatWasMadeSmallIsWhatStays) {
  CampaignOptions o = options(2000);
  o.max_failed = 1;
  const CampaignResult result = run_campaign(naive(Fault::lse_base_2), o);
  ASSERT_EQ(result.failures.size(), 1u) << to_text(o, result);
  ASSERT_NE(result.failures[0].minimal, result.failures[0].found);
  CorpusEntry entry;
  entry.property = result.failures[0].property;
  entry.the_case = result.failures[0].minimal;
  EXPECT_TRUE(fs::exists(folder_ / corpus_file_name(entry)));
  entry.the_case = result.failures[0].found;
  EXPECT_FALSE(fs::exists(folder_ / corpus_file_name(entry)));
}

TEST_F(CorpusTest, ShardsReplayEachFileOnce) {
  const Corpus corpus(folder_);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CorpusEntry entry = an_entry();
    entry.the_case.seed = seed;
    corpus.add(entry);
  }
  std::uint64_t replayed = 0;
  CampaignOptions o = options(3);
  o.shard_count = 3;
  for (o.shard_index = 0; o.shard_index < 3; ++o.shard_index)
    replayed += run_campaign(naive(Fault::none), o).corpus.replayed;
  EXPECT_EQ(replayed, 30u);
}

TEST_F(CorpusTest, BadFilesAreRefusedByFileFieldValueAndLimit) {
  const auto why = [&](const std::string& text) -> std::string {
    std::ofstream(folder_ / "x.json") << text;
    try {
      const Corpus corpus(folder_);
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), HasSubstr((folder_ / "x.json").string()));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    return "accepted";
  };
  const auto with = [](const char* field, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json json = to_json(an_entry());
    json[field] = value;
    return json.dump();
  };
  const auto without = [](const char* field) {
    nlohmann::ordered_json json = to_json(an_entry());
    json.erase(field);
    return json.dump();
  };
  EXPECT_EQ(why(to_json(an_entry()).dump()), "accepted");
  EXPECT_THAT(why("{"), HasSubstr("malformed at byte"));
  EXPECT_THAT(why(""), HasSubstr("malformed"));
  EXPECT_THAT(why("[1]"), HasSubstr("is no object"));
  EXPECT_THAT(why(std::string(1000, '[')), HasSubstr("nested"));
  EXPECT_THAT(why("{\"schema\": 1e999}"), HasSubstr("float64"));
  EXPECT_THAT(why("{\"schema\": 1, \"schema\": 2}"), HasSubstr("schema: given twice"));
  EXPECT_THAT(why(with("schema", "attest/corpus/2")),
              HasSubstr("schema: \"attest/corpus/2\" is not 'attest/corpus/1'"));
  EXPECT_THAT(why(with("generator_version", generator_version + 1)), HasSubstr("generator_version: "));
  EXPECT_THAT(why(with("generator_version", -1)), HasSubstr("generator_version: -1"));
  EXPECT_THAT(why(with("property", "telepathy")), HasSubstr("property: 'telepathy' is none of"));
  EXPECT_THAT(why(with("status", "sad")), HasSubstr("status: \"sad\""));
  EXPECT_THAT(why(with("kernel", 3)), HasSubstr("kernel: 3 is no string"));
  EXPECT_THAT(why(with("colour", 3)), HasSubstr("colour: 3 is no field"));
  EXPECT_THAT(why(with("case", {{"batch", -1}})), HasSubstr("batch: -1"));
  EXPECT_THAT(why(with("case", 7)), HasSubstr("case: 7"));
  EXPECT_THAT(why(without("case")), HasSubstr("case: nothing"));
  EXPECT_THAT(why(without("schema")), HasSubstr("schema: nothing"));
  EXPECT_THAT(why(without("property")), HasSubstr("property: nothing"));
}

TEST_F(CorpusTest, AFileIsNoFolder) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_THROW(Corpus(folder_ / "file"), InvalidInput);
  EXPECT_NO_THROW(Corpus(folder_ / "new" / "deep"));
  std::ofstream(folder_ / "notes.txt") << "not an entry";
  EXPECT_NO_THROW(Corpus corpus(folder_));
}

TEST_F(CorpusTest, ALimitOfFailuresCutsReplaysAlikeForAnyNumberOfThreads) {
  const Corpus corpus(folder_);
  for (std::int64_t keys = 40; keys < 60; ++keys) {
    CorpusEntry entry = an_entry();
    entry.the_case.problem.seqlen_q = 2;
    entry.the_case.problem.seqlen_k = keys;
    corpus.add(entry);
  }
  const std::vector<Corpus::File> files = Corpus(folder_).files();
  CampaignOptions o = options(30);
  o.shrink.max_runs = 0;
  const auto run = [&](int threads, std::uint64_t max_failed) {
    o.threads = threads;
    o.max_failed = max_failed;
    const auto result = run_campaign([] { return std::make_unique<SleepyKernel>(Fault::lse_base_2); }, o);
    for (const auto& file : fs::directory_iterator(folder_))  // the cases' failures joined it
      if (std::none_of(files.begin(), files.end(), [&](const auto& f) { return f.name == file.path().filename(); }))
        fs::remove(file.path());
    return result;
  };
  for (const std::uint64_t max_failed : {7u, 22u}) {  // among the replays, and just after them
    const CampaignResult one = run(1, max_failed), four = run(4, max_failed);
    EXPECT_EQ(one.corpus.replayed, std::min<std::uint64_t>(max_failed, 20));
    EXPECT_EQ(one.stopped, Stopped::failures);
    EXPECT_EQ(one.failed + one.corpus.failed, max_failed);
    EXPECT_EQ(four.corpus.replayed, one.corpus.replayed);
    EXPECT_EQ(four.corpus.files, 20u);
    EXPECT_EQ(four.corpus.statuses, one.corpus.statuses);
    EXPECT_EQ(four.statuses, one.statuses);
    EXPECT_EQ(four.cases, one.cases);
    EXPECT_EQ(four.stopped, one.stopped);
    EXPECT_EQ(four.by_property, one.by_property);
    EXPECT_EQ(four.first_uncovered_k, one.first_uncovered_k);
    ASSERT_EQ(four.failures.size(), one.failures.size());
    EXPECT_EQ(four.failures[0].corpus_file, one.failures[0].corpus_file);
    EXPECT_EQ(four.failures[0].seen, one.failures[0].seen);
  }
}

TEST_F(CorpusTest, AReplayKeepsTheTime) {
  const Corpus corpus(folder_);
  for (std::int64_t keys = 0; keys < 300; keys += 3) {
    CorpusEntry entry = an_entry();
    entry.the_case.problem.seqlen_q = 2;
    entry.the_case.problem.seqlen_k = keys;
    corpus.add(entry);
  }
  CampaignOptions o = options(30);
  o.threads = 1;
  o.time_seconds = 0.3;
  const CampaignResult result = run_campaign([] { return std::make_unique<SleepyKernel>(Fault::none); }, o);
  EXPECT_EQ(result.stopped, Stopped::time);
  EXPECT_GT(result.corpus.replayed, 0u);
  EXPECT_LT(result.corpus.replayed, 100u);
  EXPECT_EQ(result.cases, 0u);
  EXPECT_EQ(result.first_uncovered_k, 0u);
  EXPECT_THAT(to_text(o, result), HasSubstr(fmt::format("corpus: {} of 100 replayed", result.corpus.replayed)));
}

}  // namespace
}  // namespace attest
