// Plans as files, from the command line and back.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attest/problem/exit_code.h"
#include "run_attest.h"

namespace attest::tools {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> a_case = {"--headdim", "128", "--seqlen-q", "300", "--seqlen-k", "300"};

Json json_of(std::vector<std::string> arguments, const Folder& folder) {
  arguments.insert(arguments.end(), a_case.begin(), a_case.end());
  arguments.insert(arguments.end(), {"--json", "-"});
  const Ran ran = run_attest(arguments, folder);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  return Json::parse(ran.out);
}

TEST(PlanCommands, WhatPlansPrintsPredictReads) {
  const Folder folder;
  std::vector<std::string> print = {"plans", "--plan", "fa2"};
  print.insert(print.end(), a_case.begin(), a_case.end());
  folder.write("fa2.json", run_attest(print, folder).out);
  const Json named = json_of({"predict", "--plan", "fa2"}, folder);
  EXPECT_EQ(json_of({"predict", "--plan", "fa2.json"}, folder), named);
  folder.write("report.json", named.dump());
  EXPECT_EQ(json_of({"predict", "--plan", "report.json"}, folder), named);
  EXPECT_EQ(named.at("plan"), Json::parse(folder.read("fa2.json")));
  const Json printed = json_of({"plans", "--plan", "fa2"}, folder);
  EXPECT_EQ(printed.at("schema"), "attest/plans/1");
  EXPECT_EQ(printed.at("plan"), named.at("plan"));
}

/// What `attest plans` refuses, in the words in which `attest predict` does; "" where both take it.
std::string refusal(const std::vector<std::string>& asked, const Folder& folder) {
  std::vector<std::string> print = {"plans"}, predict = {"predict"};
  print.insert(print.end(), asked.begin(), asked.end());
  predict.insert(predict.end(), asked.begin(), asked.end());
  const Ran printed = run_attest(print, folder), predicted = run_attest(predict, folder);
  EXPECT_EQ(printed.exit_code, predicted.exit_code) << predicted.err;
  EXPECT_EQ(printed.err, predicted.err);
  return printed.exit_code == exit_usage ? printed.err : "";
}

TEST(PlanCommands, PlansRefusesWhatPredictRefuses) {
  const Folder folder;
  int refused = 0;
  for (const char* plan : {"attest", "fa2", "fa3", "cudnn"})
    for (const char* device : {"h200", "a100", "mtt-s4000"})
      for (const char* headdim : {"60", "64", "256"})
        refused += !refusal({"--plan", plan, "--device", device, "--headdim", headdim}, folder).empty();
  EXPECT_GT(refused, 10);
  EXPECT_LT(refused, 30);
}

TEST(PlanCommands, PlansRefusesWhatTheCaseOrItsModelRulesOut) {
  const Folder folder;
  const std::pair<std::vector<std::string>, const char*> all[] = {
      {{"--plan", "fa2", "--set", "packed_heads=3", "--nheads", "4", "--nheads-k", "2"},
       "attest: packed_heads: 3 does not divide the 2 query heads of a key head (in --set)\n"},
      {{"--plan", "fa2", "--set", "packed_heads=2", "--nheads", "4", "--nheads-k", "2"}, ""},
      {{"--plan", "fa2", "--set", "packed_heads=2", "--nheads", "4", "--nheads-k", "2", "--sink"},
       "attest: packed_heads: 2 is above 1, where the case has alibi, bias or a sink: heads differ there (in --set)\n"},
      {{"--plan", "fa2", "--set", "headdim=32"}, "attest: headdim: 32 of the plan is not the case's 64 (in --set)\n"},
      {{"--plan", "attest", "--device", "ascend910b"}, ""},
      {{"--plan", "attest", "--device", "ascend910b", "--num-splits", "2"},
       "attest: num_splits: 2 asks for splits, which the model of ascend910b lacks\n"},
      {{"--plan", "attest", "--device", "ascend910b", "--num-splits", "2", "--set", "stages=2"},
       "attest: num_splits: 2 asks for splits, which the model of ascend910b lacks\n"},
      {{"--plan", "attest", "--device", "ascend910b", "--bias", "bhqk"},
       "attest: bias: bhqk asks for a bias, which the model of ascend910b lacks\n"},
      {{"--plan", "attest", "--device", "ascend910b", "--set", "tile_n=512", "--set", "tile_m=128"},
       "attest: tile_m: 128 with tile_n 512 and stages 2 takes 229888 bytes, more than unified_buffer_bytes = 196608 "
       "of ascend910b (in --set)\n"},
  };
  for (const auto& [asked, said] : all) EXPECT_EQ(refusal(asked, folder), said);
}

TEST(PlanCommands, SetChangesTheChosenPlan) {
  const Folder folder;
  const Json as_it_is = json_of({"predict", "--plan", "fa2"}, folder);
  const Json changed = json_of({"predict", "--plan", "fa2", "--set", "swizzled=false", "--set", "stages=2"}, folder);
  EXPECT_EQ(changed.at("plan").at("name"), "fa2 swizzled=false stages=2");
  EXPECT_EQ(changed.at("plan").at("swizzled"), false);
  EXPECT_EQ(changed.at("plan").at("known_registers"), 0);
  EXPECT_EQ(as_it_is.at("smem_wavefronts"), as_it_is.at("smem_wavefronts_ideal"));
  EXPECT_GT(changed.at("smem_wavefronts"), changed.at("smem_wavefronts_ideal"));
  EXPECT_GT(changed.at("smem_bytes_per_cta"), as_it_is.at("smem_bytes_per_cta"));
}

TEST(PlanCommands, SensitivityIsAskedForOrOfAPage) {
  const Folder folder;
  const Json without = json_of({"predict", "--device", "a100"}, folder);
  EXPECT_TRUE(without.at("hangs_on").is_null());
  EXPECT_GT(without.at("estimated_fields"), 10);
  const Json with = json_of({"predict", "--device", "a100", "--sensitivity"}, folder);
  EXPECT_GT(with.at("hangs_on").size(), 3u);
  EXPECT_EQ(json_of({"predict", "--device", "a100", "--html", "page.html"}, folder).at("hangs_on"),
            with.at("hangs_on"));
  EXPECT_EQ(with.at("time_us"), without.at("time_us"));
}

TEST(PlanCommands, TheWinnerOfTuneIsAPlanForPredict) {
  const Folder folder;
  const Json tuned = json_of({"tune", "--device", "a100", "--top", "1"}, folder);
  const Json& winner = tuned.at("ranked").at(0);
  folder.write("winner.json", winner.at("plan").dump());
  const Json predicted = json_of({"predict", "--plan", "winner.json", "--device", "a100"}, folder);
  EXPECT_EQ(predicted.at("time_us"), winner.at("time_us"));
  EXPECT_EQ(predicted.at("plan"), winner.at("plan"));
}

TEST(PlanCommands, ASweepGivesATableCsvAndJson) {
  const Folder folder;
  const std::vector<std::string> ask = {"predict", "--model",     "llama-3-8b", "--sweep", "seqlen=128..512:x2",
                                        "--csv",   "lengths.csv", "--json",     "-"};
  const Ran ran = run_attest(ask, folder);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json.at("schema"), "attest/predict/1");
  EXPECT_EQ(json.at("sweep_field"), "seqlen");
  ASSERT_EQ(json.at("sweep").size(), 3u);
  EXPECT_EQ(json.at("sweep").at(2).at("seqlen"), 512);
  EXPECT_GT(json.at("sweep").at(2).at("flops"), json.at("sweep").at(1).at("flops"));
  const std::string csv = folder.read("lengths.csv");
  EXPECT_TRUE(csv.starts_with("seqlen,time_us,")) << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
}

TEST(PlanCommands, ASweepTakesWordsOfCasePlanAndDevice) {
  const Folder folder;
  for (const auto& [sweep, field, values] :
       {std::tuple{"dtype=fp16,bf16", "dtype", Json{"fp16", "bf16"}},
        std::tuple{"swizzled=true,false", "swizzled", Json{true, false}},
        std::tuple{"softcap=10..30:+7.5", "softcap", Json{10, 17.5, 25}},
        std::tuple{"device=a100,h200", "device", Json{"a100", "h200"}},
        std::tuple{"plan=fa2,fa3", "plan", Json{"fa2", "fa3"}},
        std::tuple{"l2_bytes=26214400,52428800", "l2_bytes", Json{26214400, 52428800}}}) {
    const Ran ran = run_attest({"predict", "--seqlen-q", "256", "--seqlen-k", "256", "--headdim", "128", "--sweep",
                                sweep, "--csv", "rows.csv", "--json", "-"},
                               folder);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const Json json = Json::parse(ran.out);
    EXPECT_EQ(json.at("sweep_field"), field);
    EXPECT_EQ(json.contains("device"), std::string(field) != "device");
    EXPECT_EQ(json.contains("plan_name"), std::string(field) != "plan");
    ASSERT_EQ(json.at("sweep").size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(json.at("sweep").at(i).at(field), values.at(i));
      EXPECT_TRUE(json.at("sweep").at(i).contains("time_us") || field == std::string("plan")) << json.at("sweep").at(i);
    }
    EXPECT_TRUE(folder.read("rows.csv").starts_with(std::string(field) + ",time_us,"));
  }
}

// /dev/full takes nothing: the page that goes with it must not stand alone.
TEST(PlanCommands, FilesOfOnePredictionAppearTogetherOrNotAtAll) {
  const Folder folder;
  for (const std::vector<std::string>& ask :
       {std::vector<std::string>{"predict", "--html", "page.html", "--trace", "trace.json"},
        {"predict", "--sweep", "seqlen=64,128", "--html", "page.html", "--csv", "rows.csv"},
        {"tune", "--html", "page.html", "--device", "a100"}}) {
    std::vector<std::string> arguments = ask;
    arguments.insert(arguments.end(), {"--seqlen-q", "64", "--seqlen-k", "64", "--json", "/dev/full"});
    const Ran ran = run_attest(arguments, folder);
    EXPECT_EQ(ran.exit_code, exit_environment);
    EXPECT_EQ(ran.err, "attest: '/dev/full': cannot be written: No space left on device\n");
    EXPECT_TRUE(folder.files().empty()) << folder.files().front();
  }
}

}  // namespace
}  // namespace attest::tools
