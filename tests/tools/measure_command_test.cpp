// attest measure, of what others have measured.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run_attest.h"

namespace attest::tools {
namespace {

std::string row_of(const std::string& mechanism) {
  return "mechanism,kernel,case,launch,function,dram__bytes_read.sum\n" + mechanism +
         ",sm80,\"{\"\"nheads\"\":8,\"\"seqlen_q\"\":1024,\"\"seqlen_k\"\":1024}\",0,f,1\n";
}

std::string measured(const Folder& folder, const std::string& from, const std::string& against,
                     const std::string& json = "a.json") {
  return run_attest({"measure", "--panel", "--from", from, "--against", against, "--device", "h200", "--json", json},
                    folder)
      .out;
}

TEST(Measure, OfTwoMeasurementsItIsSaidHowEachWasCounted) {
  const Folder folder;
  folder.write("a.csv", "# gpu: NVIDIA H200\n# via: cupti\n# caches: cold\n" + row_of("m"));
  folder.write("b.csv", "# gpu: NVIDIA H100\n# via: ncu\n# caches: warm\n" + row_of("m"));
  folder.write("silent.csv", row_of("m"));
  const std::string of_a = "NVIDIA H200; through cupti, cold caches; predicted for ",
                    of_b = "\n\n'b.csv': NVIDIA H100; through ncu, warm caches\n",
                    silent = "'silent.csv' does not say how it was counted\n",
                    table = "two measurements of 1 calls of one launch";
  const std::string both = measured(folder, "a.csv", "b.csv"), other = measured(folder, "a.csv", "silent.csv"),
                    first = measured(folder, "silent.csv", "b.csv");
  EXPECT_EQ(both.find(of_a), 0u) << both;
  EXPECT_NE(both.find(of_b + table), std::string::npos) << both;
  EXPECT_EQ(both.find("H200; through"), both.rfind("H200; through")) << both;
  EXPECT_NE(other.find("\n\n" + silent + table), std::string::npos) << other;
  EXPECT_NE(first.find("\n\n" + silent + of_b.substr(2) + table), std::string::npos) << first;
  const auto json = nlohmann::json::parse(measured(folder, "a.csv", "b.csv", "-"));
  EXPECT_EQ(json.at("via"), "cupti");
  EXPECT_EQ(json.at("warm"), false);
  const nlohmann::json& against = json.at("against");
  EXPECT_EQ(against.at("measured"), "NVIDIA H100; through ncu, warm caches");
  EXPECT_EQ(against.at("gpu"), "NVIDIA H100");
  EXPECT_EQ(against.at("via"), "ncu");
  EXPECT_EQ(against.at("warm"), true);
  EXPECT_EQ(against.at("calls"), 1);
}

// Whose ends tell two paths apart, and what a file says at length from what attest says behind it.
TEST(Measure, LongNamesAreCutInTablesAlone) {
  const Folder folder;
  const std::string name(1 << 20, 'x'), deep(200, 'd');
  const std::string text = "# gpu: G" + name + "\n# via: ncu\n" + row_of("M" + name + "m");
  std::filesystem::create_directory(folder.path() / deep);
  folder.write(deep + "/a.csv", text);
  folder.write(deep + "/b.csv", text);
  const std::string table = measured(folder, deep + "/a.csv", deep + "/b.csv");
  EXPECT_LT(table.size(), 10'000u);
  EXPECT_EQ(table.find("Gxxx"), 0u) << table;
  EXPECT_NE(table.find("xxx; through ncu; predicted for "), std::string::npos) << table;
  EXPECT_NE(table.find("\nMxxx"), std::string::npos) << table;
  EXPECT_NE(table.find("xxm "), std::string::npos) << table;
  EXPECT_NE(table.find("ddd/b.csv': Gxxx"), std::string::npos) << table;
  const auto json = nlohmann::json::parse(measured(folder, deep + "/a.csv", deep + "/b.csv", "-"));
  EXPECT_EQ(json.at("gpu"), "G" + name);
  EXPECT_EQ(json.at("against").at("gpu"), "G" + name);
  EXPECT_EQ(json.at("calls").at(0).at("mechanism"), "M" + name + "m");
}

}  // namespace
}  // namespace attest::tools
