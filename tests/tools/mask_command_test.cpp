// attest check --mask: the file, the sentence, the JSON and the exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_attest.h"

namespace attest::tools {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

std::vector<std::string> check(const std::string& kernel, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"check", "--kernel",   kernel, "--property", "hazards", "--batch",
                                        "2",     "--seqlen-q", "9",    "--seqlen-k", "21",      "--window=4,-1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(MaskCommand, DrawsARightKernel) {
  const Folder folder;
  const Ran ran = run_attest(check("cpu", {"--mask", "mask.svg"}), folder);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  // off = 12: row i sees keys i + 8 to 20
  EXPECT_THAT(ran.out, HasSubstr("mask, read in 1 launch: cpu sees exactly the keys it should: 162 pairs in 18 rows."));
  EXPECT_EQ(folder.files(), std::vector<std::string>{"mask.svg"});
  EXPECT_THAT(folder.read("mask.svg"), HasSubstr("</svg>"));
}

TEST(MaskCommand, AWrongMaskIsStatusOneAndNamesItsKeys) {
  const Folder folder;
  const Ran ran = run_attest(check("mutant:24-window-left-exclusive", {"--mask", "mask.svg", "--json", "-"}), folder);
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  const Json mask = Json::parse(ran.out).at("mask");
  EXPECT_EQ(mask.at("launches"), 1);
  EXPECT_EQ(mask.at("rows"), 18);
  EXPECT_EQ(mask.at("missing"), 18);
  EXPECT_EQ(mask.at("extra"), 0);
  EXPECT_EQ(mask.at("doubled"), 0);
  EXPECT_EQ(mask.at("first").at("query"), 0);
  EXPECT_EQ(mask.at("first").at("key"), 8);
  EXPECT_THAT(folder.read("mask.svg"), HasSubstr("misses 18 of the 162 pairs that it should see"));
}

TEST(MaskCommand, OneEntryAlone) {
  const Folder folder;
  const Ran ran = run_attest(
      check("mutant:24-window-left-exclusive", {"--mask", "mask.svg", "--mask-batch", "1", "--mask-head", "0"}),
      folder);
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("misses 9 of the 81 pairs"));
  EXPECT_THAT(ran.out, HasSubstr("query 0 of batch 1, head 0: missing 8"));
}

TEST(MaskCommand, ADryRunSaysHowManyLaunchesAndWritesNothing) {
  const Folder folder;
  const Ran ran = run_attest(check("cpu", {"--mask", "mask.svg", "--dry-run"}), folder);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("mask (1 launch)"));
  EXPECT_TRUE(folder.files().empty());
}

}  // namespace
}  // namespace attest::tools
