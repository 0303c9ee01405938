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

// Files of several days may be one after the other.
TEST(Measure, ACallThatAFileHasSeveralTimesIsOne) {
  const Folder folder;
  std::string text = row_of("m");
  const std::string row = text.substr(text.find('\n') + 1);
  std::string other = row;
  other[other.size() - 2] = '3';  // bytes
  folder.write("a.csv", "# gpu: NVIDIA H200\n" + text + other);
  folder.write("b.csv", text);
  const auto json = nlohmann::json::parse(measured(folder, "a.csv", "b.csv", "-"));
  ASSERT_EQ(json.at("calls").size(), 1u);
  const nlohmann::json& call = json.at("calls")[0];
  EXPECT_EQ(call.at("counts"), 2);
  EXPECT_EQ(call.at("figures")[0].at("measured"), 2);
  EXPECT_NEAR(call.at("figures")[0].at("deviation").get<double>(), 0.7071, 1e-4);
  EXPECT_NEAR(json.at("errors")[0].at("deviation_most").get<double>(), 0.7071, 1e-4);
  EXPECT_NEAR(json.at("against").at("differences")[0].at("mean").get<double>(), 0.5, 1e-12);
  const std::string table = measured(folder, "a.csv", "b.csv");
  EXPECT_NE(table.find("standard deviation of up to 2 counts of a call in %"), std::string::npos) << table;
  const std::string wrong = "m,sm80,\"{\"\"dtype\"\":\"\"fp32\"\"}\",0,f,1\n";
  folder.write("wrong.csv", "# gpu: NVIDIA H200\n" + text + wrong + other + wrong);
  EXPECT_EQ(run_attest({"measure", "--panel", "--from", "wrong.csv"}, folder).err,
            "attest: wrong.csv: line 4: dtype: 'fp32' is neither fp16 nor bf16, and kernel sm80 takes nothing else\n");
  std::string fast = text;
  fast.replace(fast.find("dram__bytes_read.sum"), std::string("dram__bytes_read.sum").size(),
               "sm__cycles_elapsed.max,gpu__time_duration.sum");
  fast.replace(fast.rfind(",1\n"), 3, ",2e6,1000\n");
  folder.write("fast.csv",
               "# gpu: NVIDIA H200\n" + fast +
                   "m,sm80,\"{\"\"nheads\"\":8,\"\"seqlen_q\"\":1024,\"\"seqlen_k\"\":1024}\",0,f,2e6,1001\n");
  EXPECT_EQ(run_attest({"measure", "--panel", "--from", "fast.csv"}, folder).err,
            "attest: fast.csv: line 3 and the call's other counts: sm_clock_hz.value: 1999000499750.1248 is outside "
            "1000000 to 100000000000 (in sm__cycles_elapsed.max over gpu__time_duration.sum)\n");
}

// A file says on which sides of L2 its chip's GPCs lie; a device that is named has its own.
TEST(Measure, IsPredictedForTheChipThatWasMeasured) {
  const Folder folder;
  const auto of_chip = [&](const std::string& sides, const std::vector<std::string>& flags = {}) {
    folder.write("a.csv", "# gpu: NVIDIA H200\n# gpc_sides: " + sides + "\n" + row_of("m"));
    std::vector<std::string> all = {"measure", "--panel", "--from", "a.csv"};
    all.insert(all.end(), flags.begin(), flags.end());
    return run_attest(all, folder);
  };
  const std::string sides = "0 0 1 1 1 0 1 0";
  EXPECT_EQ(of_chip(sides).out.find("NVIDIA H200, GPCs on sides " + sides + "; predicted for h200\n"), 0u);
  const auto predicted = [&](const std::string& of, const std::vector<std::string>& flags = {}) {
    std::vector<std::string> all = {"--json", "-"};
    all.insert(all.end(), flags.begin(), flags.end());
    const auto json = nlohmann::json::parse(of_chip(of, all).out);
    EXPECT_EQ(json.at("device_gpc_sides") == json.at("gpc_sides"), flags.empty());
    return json.at("calls")[0].at("figures");
  };
  EXPECT_NE(predicted(sides), predicted("0 1 1 1 0 0 0 1"));
  EXPECT_EQ(predicted(sides, {"--device", "h200"}), predicted("0 1 1 1 0 0 0 1"));
  EXPECT_EQ(of_chip("0 0 2").err,
            "attest: a.csv: line 2: gpc_sides: '0 0 2' is no list of 0 and 1 with a space "
            "between them\n");
  EXPECT_EQ(of_chip("0 0 1").err, "attest: gpc_sides: 3 GPCs must be as many as h200 has, 8\n");
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
