#include "attest/nightly/merge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/outcomes.h"
#include "attest/problem/error.h"
#include "nights.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::StartsWith;

// What case k of this campaign comes to.
Status truth(std::uint64_t k) {
  return k % 10 == 3 ? Status::unsupported : (k == 61 ? Status::wrong_values : Status::passed);
}

// Shard I of N from `first` on, `count` of its cases.
ShardPart part_of(std::uint64_t index, std::uint64_t shards, std::uint64_t first, std::uint64_t count) {
  CampaignOptions options;
  options.shard_index = index, options.shard_count = shards, options.first_case = first;
  ShardPart part{"dir", {7, 2, index, shards}, {"cpu", first, {}}};
  for (std::uint64_t n = 0; n < count; ++n) part.covered.outcomes.push_back(truth(options.case_number(n)));
  return part;
}

MergedCampaign one(const std::vector<ShardPart>& parts) {
  const Merged merged = merge({parts, {}, {}, {}});
  EXPECT_EQ(merged.campaigns.size(), 1u);
  return merged.campaigns.at(0);
}

TEST(Merge, AnyNumberOfShardsIsTheSameCampaign) {
  const MergedCampaign whole = one({part_of(0, 1, 0, 120)});
  EXPECT_EQ(whole.prefix, 120u);
  EXPECT_EQ(whole.statuses[Status::unsupported], 12u);
  for (const std::uint64_t shards : {2u, 3u, 7u, 40u}) {
    std::vector<ShardPart> parts;
    for (std::uint64_t i = 0; i < shards; ++i) {
      const std::uint64_t mine = (120 - i + shards - 1) / shards, first = mine / 3;
      CampaignOptions options;
      options.shard_index = i, options.shard_count = shards;
      parts.push_back(part_of(i, shards, options.case_number(first), mine - first));  // after an interruption
      parts.push_back(part_of(i, shards, 0, first));
    }
    std::reverse(parts.begin(), parts.end());
    const MergedCampaign merged = one(parts);
    EXPECT_EQ(merged.prefix, whole.prefix) << shards;
    EXPECT_EQ(merged.statuses, whole.statuses) << shards;
    EXPECT_EQ(merged.twice, 0u) << shards;
    EXPECT_THAT(merged.missing_shards, IsEmpty());
  }
}

TEST(Merge, ThePrefixEndsAtTheFirstCaseThatNobodyRan) {
  const MergedCampaign merged = one({part_of(0, 3, 0, 30), part_of(1, 3, 0, 10), part_of(2, 3, 0, 30)});
  EXPECT_EQ(merged.prefix, 31u);  // 31 is shard 1's eleventh
  EXPECT_EQ(merged.prefix_statuses.total(), 31u);
  EXPECT_EQ(merged.statuses.total(), 70u);
}

TEST(Merge, AMissingShardIsTold) {
  const MergedCampaign merged = one({part_of(0, 4, 0, 30), part_of(1, 4, 0, 30), part_of(3, 4, 0, 30)});
  EXPECT_THAT(merged.missing_shards, ElementsAre("2/4"));
  EXPECT_EQ(merged.prefix, 2u);
}

TEST(Merge, WhatIsRunTwiceCountsOnce) {
  const MergedCampaign merged = one({part_of(0, 1, 0, 50), part_of(0, 1, 20, 60), part_of(1, 2, 0, 10)});
  EXPECT_EQ(merged.prefix, 80u);
  EXPECT_EQ(merged.statuses.total(), 80u);
  EXPECT_EQ(merged.twice, 30u + 10u);
  EXPECT_EQ(merged.disagreeing, 0u);
}

TEST(Merge, ADisagreementIsAFailureOfTheKernel) {
  ShardPart other = part_of(0, 1, 0, 40);
  other.covered.outcomes[33] = other.covered.outcomes[12] = Status::wrong_values;
  for (const bool reversed : {false, true}) {
    std::vector<ShardPart> parts = {part_of(0, 1, 0, 40), other};
    if (reversed) std::reverse(parts.begin(), parts.end());
    const MergedCampaign merged = one(parts);
    EXPECT_EQ(merged.disagreeing, 2u);
    EXPECT_EQ(merged.first_disagreeing_k, 12u);
    EXPECT_EQ(merged.statuses.failed(), 2u);
    EXPECT_EQ(merge({parts, {}, {}, {}}).exit_code(), exit_kernel_wrong);
  }
}

TEST(Merge, CampaignsOfOtherSeedsStandApart) {
  ShardPart other = part_of(0, 1, 0, 5);
  other.campaign.seed = 8;
  EXPECT_EQ(merge({{part_of(0, 1, 0, 5), other}, {}, {}, {}}).campaigns.size(), 2u);
}

TEST(Merge, TheExitStatusIsTheWorst) {
  const auto with = [](std::initializer_list<CheckState> states) {
    Shards shards{{part_of(0, 1, 0, 5)}, {}, {}, {}};
    for (const CheckState state : states) shards.failures.push_back({"dir", "c", "", "", state});
    return merge(shards).exit_code();
  };
  EXPECT_EQ(with({}), exit_pass);
  EXPECT_EQ(with({CheckState::regressed}), exit_regression);
  EXPECT_EQ(with({CheckState::regressed, CheckState::wrong}), exit_kernel_wrong);
  EXPECT_EQ(with({CheckState::wrong, CheckState::crashed, CheckState::regressed}), exit_kernel_crashed);
  EXPECT_EQ(merge({}).exit_code(), exit_unsupported);
}

TEST(Merge, BeyondABillionCasesIsRefused) {
  ShardPart far = part_of(0, 1, 0, 1);
  far.covered.first_case = 2'000'000'000;
  EXPECT_THROW(one({far}), InvalidInput);
  far.covered.first_case = 999'999'999;
  far.covered.outcomes.push_back(Status::passed);
  EXPECT_THROW(one({far}), InvalidInput);
}

TEST(Merge, MoreThanABillionShardsAreRefused) {
  // 2^63 times 2 is 0, so that the third case would have the first one's number.
  for (const std::uint64_t count : {std::uint64_t{1} << 63, std::uint64_t{1'000'000'001}, std::uint64_t{0}}) {
    ShardPart part = part_of(0, 1, 0, 3);
    part.campaign.shard_count = count;
    try {
      one({part});
      ADD_FAILURE() << count;
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), HasSubstr("shard: '0/" + std::to_string(count) + "'"));
      EXPECT_THAT(error.what(), HasSubstr("is not I/N with 0 <= I < N <= 1000000000"));
    }
  }
  ShardPart wide = part_of(0, 1, 0, 3);
  wide.campaign.shard_count = 500'000'000;
  EXPECT_THROW(one({wide}), InvalidInput) << "its third case is number 10^9";
}

TEST(Outcomes, ReadBackAsWritten) {
  std::vector<Status> outcomes;
  for (std::uint64_t k = 0; k < 500; ++k) outcomes.push_back(truth(k));
  for (const Status status : all_statuses) outcomes.push_back(status);
  EXPECT_EQ(outcomes_from_text("f", outcomes_text(outcomes)), outcomes);
  EXPECT_EQ(outcomes_text({Status::passed, Status::passed, Status::hung}), "2p1h");
  EXPECT_EQ(outcomes_text({}), "");
  for (const char* bad : {"p", "3", "0p", "-1p", "3x", "2p 1h", "1000000001p", "99999999999999999999p"})
    EXPECT_THROW(outcomes_from_text("f", bad), InvalidInput) << bad;
}

class Folders : public InItsOwnFolder {
 protected:
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder / name) << text; }
  std::string refusal() const {
    try {
      read_shards({folder.string()});
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Folders, OfANightAndOfReports) {
  {
    History history(folder);
    Night night = night_of("2026-11-20");
    night.campaign = {7, 2, 1, 2};
    const std::int64_t id = history.begin(night);
    history.record(
        id, {{"fuzz/cpu", 1, ""}, {{"fuzz/cpu/gqa", CheckState::wrong, "d", "r"}}, {}, {part_of(1, 2, 0, 5).covered}});
  }
  const Shards shards = read_shards({folder.string()});
  ASSERT_EQ(shards.parts.size(), 1u);
  EXPECT_EQ(shards.parts[0].campaign, (Campaign{7, 2, 1, 2}));
  EXPECT_EQ(shards.parts[0].covered, part_of(1, 2, 0, 5).covered);
  ASSERT_EQ(shards.failures.size(), 1u);
  EXPECT_EQ(shards.failures[0].repro, "r");
  EXPECT_THAT(shards.unfinished, ElementsAre(folder.string()));
}

// A shard that was requeued after its end, or after another campaign had begun there.
TEST_F(Folders, EveryNightOfTheLastCampaignCounts) {
  {
    History history(folder);
    const auto add = [&](std::uint64_t seed, std::uint64_t first, std::uint64_t count) {
      Night night = night_of("2026-11-20");
      night.campaign = {seed, 2, 0, 1};
      const std::int64_t id = history.begin(night);
      history.record(id, {{"fuzz/cpu", 1, ""}, {}, {}, {part_of(0, 1, first, count).covered}});
      history.finish(id, night.started);
    };
    add(7, 0, 40), add(8, 0, 10), add(7, 30, 30);
  }
  const Shards shards = read_shards({folder.string()});
  EXPECT_THAT(shards.unfinished, IsEmpty());
  const MergedCampaign merged = one(shards.parts);
  EXPECT_EQ(merged.seed, 7u);
  EXPECT_EQ(merged.prefix, 60u);
  EXPECT_EQ(merged.twice, 10u);
}

TEST_F(Folders, WhatCannotBeReadIsNamed) {
  EXPECT_THAT(refusal(), HasSubstr("has neither a history.sqlite nor a report of attest fuzz --json"));
  write("other.json", R"({"schema": "attest/check/1"})");
  EXPECT_THAT(refusal(), HasSubstr("has neither"));
  // another program's, whatever is in it
  for (const std::string& other : {std::string(R"({"a": 1, "a": 2})"), std::string(20, '[') + std::string(20, ']'),
                                   std::string(R"({"loss": [1e-400]})")}) {
    write("other.json", other);
    EXPECT_THAT(refusal(), HasSubstr("has neither")) << other;
  }
  write("broken.json", "{\"schema\": ");
  const std::string in = fmt::format(" (in {})", (folder / "broken.json").string());
  EXPECT_EQ(refusal(), "report: 11 bytes are not JSON: malformed or cut off at byte 12, behind 'schema'" + in);
  write("broken.json", R"({"schema": "attest/fuzz/1", "seed": 1})");
  EXPECT_EQ(refusal(), "shard: missing; must be given" + in);
  write("broken.json", R"({"schema": "attest/fuzz/1", "seed": 1, "shard": "4/4"})");
  EXPECT_EQ(refusal(), "shard: '4/4' is not I/N with 0 <= I < N" + in);
}

std::string report_text(const std::string& shard) {
  return R"({"schema": "attest/fuzz/1", "seed": 7, "generator_version": 2, "kernel": "cpu", "first_case": )" +
         shard.substr(0, 1) + R"(, "outcomes": "4p", "failures": [], "shard": ")" + shard + "\"}";
}

// Each was read as another number, or passed over in silence.
TEST_F(Folders, WhatIsOfAnotherTypeIsNamed) {
  const std::string report = report_text("0/1"), in = fmt::format(" (in {})", (folder / "0.json").string());
  const std::string failure = R"({"status": "hung", "property": "gqa", "repro": "r", "k": 1})";
  const struct {
    const char *part, *instead, *says;
  } rows[] = {
      {"\"seed\": 7", "\"seed\": 1e30", "seed: 1e+30 must be a whole number from 0 to 2^64 - 1"},
      {"\"seed\": 7", "\"seed\": -2", "seed: -2 must be a whole number from 0 to 2^64 - 1"},
      {"\"seed\": 7", "\"seed\": 1.5", "seed: 1.5 must be a whole number from 0 to 2^64 - 1"},
      {"\"seed\": 7", "\"seed\": \"7\"", "seed: \"7\" must be a whole number from 0 to 2^64 - 1"},
      {"\"seed\": 7", "\"seed\": 7, \"seed\": 7", "seed: given twice; must be given once"},
      {"fuzz/1", "fuzz/2", "schema: 'attest/fuzz/2' is not 'attest/fuzz/1', the one this version reads"},
      {"\"cpu\"", "null", "kernel: null must be a string"},
      {"[]", "{}", "failures: {} must be a list"},
      {"[]", "[7]", "failures[0]: 7 must be an object"},
      {"[]", "[{\"status\": \"blue\"}]", "failures[0].status: 'blue' is no status of a verdict"},
      {"[]", "[{\"status\": \"hung\", \"k\": -1}]", "failures[0].k: -1 must be a whole number from 0 to 2^64 - 1"},
  };
  for (const auto& [part, instead, says] : rows) {
    std::string changed = report;
    write("0.json", changed.replace(changed.find(part), std::string_view(part).size(), instead));
    EXPECT_EQ(refusal(), says + in);
  }
  write("0.json", report + std::string("\0 junk", 6));
  EXPECT_THAT(refusal(), HasSubstr("are not JSON: 0 at byte "));
  std::string whole = report;
  write("0.json", whole.replace(whole.find("[]"), 2, "[" + failure + "]"));
  const Shards shards = read_shards({folder.string()});
  ASSERT_EQ(shards.failures.size(), 1u);
  EXPECT_EQ(shards.failures[0].check, "fuzz/cpu/gqa");
  EXPECT_EQ(shards.failures[0].detail, "hung in case 1");
  EXPECT_EQ(shards.failures[0].state, CheckState::crashed);
}

TEST_F(Folders, NamesMoveNoCursor) {
  std::string report = report_text("0/1");
  write("0.json", report.replace(report.find("cpu"), 3, R"(a\nb\u001b[2J)"));
  EXPECT_THAT(to_text(merge(read_shards({folder.string()}))), StartsWith("a\\x0ab\\x1b[2J seed 7: "));
}

TEST_F(Folders, ADamagedShardIsNamedAndTheOthersCount) {
  write("0.json", report_text("0/3"));
  write("1.json", report_text("1/18446744073709551615"));
  write("2.json", report_text("2/3"));
  fs::create_directory(folder / "none");
  const Merged merged = merge(read_shards({folder.string(), (folder / "none").string()}));
  ASSERT_EQ(merged.unreadable.size(), 2u);
  EXPECT_EQ(merged.unreadable[0].source, (folder / "1.json").string());
  EXPECT_THAT(merged.unreadable[0].why, HasSubstr("is not I/N with 0 <= I < N <= 1000000000"));
  EXPECT_EQ(merged.unreadable[1].source, (folder / "none").string());
  EXPECT_EQ(merged.campaigns.at(0).statuses.total(), 8u);
  EXPECT_THAT(merged.campaigns.at(0).missing_shards, ElementsAre("1/3"));
  EXPECT_EQ(merged.exit_code(), exit_environment);
  EXPECT_EQ(to_json(merged).at("unreadable").at(0).at("source"), (folder / "1.json").string());
  EXPECT_THAT(to_text(merged), HasSubstr("1.json' counts nothing: "));
}

}  // namespace
}  // namespace attest
