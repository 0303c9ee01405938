// attest measure, of what others have measured.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run_attest.h"

namespace attest::tools {
namespace {

TEST(Measure, OfTwoMeasurementsItIsSaidHowEachWasCounted) {
  const Folder folder;
  const std::string rows =
      "mechanism,kernel,case,launch,function,dram__bytes_read.sum\n"
      "m,sm80,\"{\"\"nheads\"\":8,\"\"seqlen_q\"\":1024,\"\"seqlen_k\"\":1024}\",0,f,1\n";
  folder.write("a.csv", "# gpu: NVIDIA H200\n# via: cupti\n# caches: cold\n" + rows);
  folder.write("b.csv", "# gpu: NVIDIA H100\n# via: ncu\n# caches: warm\n" + rows);
  folder.write("silent.csv", rows);
  const auto measure = [&](const std::string& other, const std::string& json) {
    return run_attest({"measure", "--panel", "--from", "a.csv", "--against", other, "--json", json}, folder).out;
  };
  const std::string of_a = "\n'a.csv': NVIDIA H200; through cupti, cold caches\n",
                    table = "two measurements of 1 calls of one launch";
  const std::string both = measure("b.csv", "a.json"), one = measure("silent.csv", "a.json");
  EXPECT_NE(both.find(of_a + "'b.csv': NVIDIA H100; through ncu, warm caches\n" + table), std::string::npos) << both;
  EXPECT_NE(one.find(of_a + "'silent.csv': nobody says how it was counted\n" + table), std::string::npos) << one;

  const auto json = nlohmann::json::parse(measure("b.csv", "-"));
  EXPECT_EQ(json.at("via"), "cupti");
  EXPECT_EQ(json.at("warm"), false);
  const nlohmann::json& against = json.at("against");
  EXPECT_EQ(against.at("measured"), "NVIDIA H100; through ncu, warm caches");
  EXPECT_EQ(against.at("gpu"), "NVIDIA H100");
  EXPECT_EQ(against.at("via"), "ncu");
  EXPECT_EQ(against.at("warm"), true);
  EXPECT_EQ(against.at("calls"), 1);
}

}  // namespace
}  // namespace attest::tools
