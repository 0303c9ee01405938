// The other pages of `--html` in a browser, and what holds of all: rankings, sweeps, counters, nights.
#include <fmt/format.h>

#include <sstream>

#include "page_view.h"
#include "run_attest.h"

namespace attest::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST_F(Page, DrawsARankingOfPlans) {
  make("tune", "a100.html", words("--nheads 16 --seqlen-q 1024 --seqlen-k 1024 --headdim 128 --device a100"));
  make("tune", "h200.html", words("--nheads 4 --seqlen-q 512 --seqlen-k 512 --causal --device h200 --top 30"));
  make("tune", "cores.html", words("--nheads 8 --seqlen-q 512 --seqlen-k 512 --dtype fp16 --device ascend910b"));
  make("tune", "none.html", words("--seqlen-q 5 --seqlen-k 0 --device h100"));
  for (const json& page : seen(folder, {"a100.html", "h200.html", "cores.html", "none.html"}, {390, 1366, 1920})) {
    SCOPED_TRACE(fmt::format("{} px: {}", page["width"].get<int>(), page["place"].get<std::string>()));
    expect_whole(page);
    expect_legible(page);
    const json& sections = page["sections"];
    for (const char* id : {"fastest", "tiles"}) {
      EXPECT_EQ(sections[id]["charts"], 1) << id;
      EXPECT_GE(sections[id]["marks"], 3) << id;
      EXPECT_GE(sections[id]["titles"], 3) << id;
    }
    EXPECT_GE(sections["against"]["charts"], 1);
    EXPECT_GE(sections["ranking"]["rows"], 10);
    EXPECT_GE(sections["why"]["words"], 60);
    if (page["place"].get<std::string>().find("A100") != std::string::npos) {
      EXPECT_EQ(sections["against"]["charts"], 4);
      EXPECT_GE(sections["against"]["titles"], 1200);  // a point a plan and panel
      EXPECT_GE(sections["skipped"]["rows"], 2);
    }
  }
}

// Values without an order: bars in the order that was asked for.
TEST_F(Page, DrawsASweepOfWords) {
  predict("dtype.html",
          words("--nheads 16 --seqlen-q 1024 --seqlen-k 1024 --sweep dtype=fp32,bf16,fp16 --device h200"));
  predict("device.html",
          words("--nheads 16 --seqlen-q 1024 --seqlen-k 1024 --sweep device=a100,h200,ascend910b,rtx3090"));
  predict("plan.html", words("--nheads 16 --seqlen-q 1024 --seqlen-k 1024 --headdim 128 --sweep plan=attest,fa2,fa3"));
  predict("lists.html", words("--sweep "
                              "varlen_k=[1,2,3],[64,64,64,64,64,64,64,64,64,64,64,64,64,64,64,64,64,64,64,64,64,64]"));
  int pages = 0;
  for (const json& page : seen(folder, {"dtype.html", "device.html", "plan.html", "lists.html"}, {390, 1366})) {
    SCOPED_TRACE(fmt::format("{} px: {}", page["width"].get<int>(), page["place"].get<std::string>()));
    expect_whole(page);
    expect_legible(page);
    const json& sections = page["sections"];
    EXPECT_EQ(sections["curves"]["charts"], 2);
    EXPECT_EQ(sections["bounds"]["charts"], 1);
    constexpr int expected_rows[] = {3, 4, 3, 2};
    EXPECT_EQ(sections["points"]["rows"], expected_rows[pages / 2]);
    EXPECT_GE(sections["curves"]["titles"], 5 * expected_rows[pages / 2]);  // bars of two and three figures a value
    ++pages;
  }
  EXPECT_EQ(pages, 8);
}

TEST_F(Page, DrawsASweep) {
  predict("lengths.html", words("--model llama-3-70b --sweep seqlen=512..8192:x2 --device h100"));
  predict("heads.html", words("--nheads 4 --seqlen-q 512 --seqlen-k 512 --sweep headdim=120..136 --device a100"));
  predict("tiles.html", words("--seqlen-q 512 --seqlen-k 512 --sweep tile_n=16,24,64,128,1024 --device a100"));
  predict("many.html", words("--seqlen-q 1 --seqlen-k 64 --sweep seed=1..300"));
  predict("one.html", words("--seqlen-q 64 --seqlen-k 64 --sweep batch=3 --device ascend910b"));
  predict("blind.html", words("--seqlen-q 64 --seqlen-k 64 --sweep seqlen=0..3"));
  int pages = 0;
  for (const json& page :
       seen(folder, {"lengths.html", "heads.html", "tiles.html", "many.html", "one.html", "blind.html"})) {
    SCOPED_TRACE(fmt::format("{} px: {}", page["width"].get<int>(), page["place"].get<std::string>()));
    expect_whole(page);
    const json& sections = page["sections"];
    EXPECT_EQ(sections["curves"]["charts"], 2);
    EXPECT_GE(sections["curves"]["marks"], 5);
    EXPECT_EQ(sections["bounds"]["charts"], 1);
    EXPECT_EQ(sections["inside"]["charts"], pages / 2 == 4 ? 1 : 2);  // cores without shared memory
    expect_legible(page);
    constexpr int expected_rows[] = {5, 17, 5, 300, 1, 4};
    EXPECT_EQ(sections["points"]["rows"], expected_rows[pages / 2]);
    if (pages / 2 == 1) {
      EXPECT_GE(sections["thread"]["charts"], 2);  // registers and CTAs change at 129
    }
    ++pages;
  }
  EXPECT_EQ(pages, 12);
}

// A call of a kernel with a plan, one of the unfused path, one without a prediction.
TEST_F(Page, DrawsCountersBesideThePrediction) {
  make("measure", "panel.html", {"--panel", "--from", ATTEST_PANEL});
  for (const json& page : seen(folder, {"panel.html"})) {
    SCOPED_TRACE(fmt::format("{} px", page["width"].get<int>()));
    expect_whole(page);
    const json& sections = page["sections"];
    EXPECT_GE(sections["diagonals"]["charts"], 6);
    EXPECT_GE(sections["diagonals"]["titles"], 8);
    EXPECT_EQ(sections["errors"]["rows"], 4);
    EXPECT_GE(sections["worst"]["rows"], 5);
    EXPECT_EQ(sections["calls"]["rows"], 3);
    EXPECT_EQ(page["place"], "NVIDIA H200 <b>; predicted for h200");
  }
}

// The same panel, each call counted twice, the second time with more bytes to the SMs; and one of its calls alone.
TEST_F(Page, DrawsHowFarCountsDeviate) {
  const std::string panel = file(ATTEST_PANEL);
  const auto counted_again = [&](const std::string& kernel) {
    std::istringstream rows(panel);
    std::string again;
    for (std::string line; std::getline(rows, line);) {
      if (line.find("," + kernel + ",") == std::string::npos) continue;
      const auto of_sm = line.find("0000000,");
      if (of_sm != std::string::npos) line.replace(of_sm, 1, "2");
      again += line + "\n";
    }
    return again;
  };
  folder.write("twice.csv", panel + counted_again("sm80") + counted_again("unfused"));
  std::istringstream rows(panel);
  std::string one;
  for (std::string line; std::getline(rows, line);)
    if (line.starts_with('#') || line.starts_with("mechanism,") || line.find(",sm80,") != std::string::npos)
      one += line + "\n";
  folder.write("one.csv", one + counted_again("sm80"));
  make("measure", "twice.html", {"--panel", "--from", "twice.csv"});
  make("measure", "one.html", {"--panel", "--from", "one.csv"});
  int pages = 0;
  for (const json& page : seen(folder, {"twice.html", "one.html"})) {
    SCOPED_TRACE(fmt::format("{} px: {}", page["width"].get<int>(), pages));
    expect_whole(page);
    const json& sections = page["sections"];
    if (pages / 2 == 0) {
      EXPECT_EQ(sections["calls"]["rows"], 3);
      EXPECT_GE(sections["worst"]["deviations"], 3);
      EXPECT_GE(sections["diagonals"]["deviations"], 8);  // tips of points
    } else {
      EXPECT_GE(sections["figures"]["deviations"], 6);
      EXPECT_EQ(sections["ratios"]["charts"], 1);
    }
    ++pages;
  }
  EXPECT_EQ(pages, 4);
}

// Small calls leave their output in L2: on logarithmic axes a figure that is 0 throughout has no place.
TEST_F(Page, DrawsNoDiagonalOfZeros) {
  folder.write("small.csv", R"(# gpu: NVIDIA H200
mechanism,kernel,case,launch,function,dram__bytes_read.sum,dram__bytes_write.sum
headdim,sm80,"{""nheads"":1,""seqlen_q"":256,""seqlen_k"":256,""headdim"":32}",0,f,100000,0
headdim,sm80,"{""nheads"":2,""seqlen_q"":256,""seqlen_k"":256,""headdim"":32}",0,f,200000,0
)");
  make("measure", "small.html", {"--panel", "--from", "small.csv"});
  for (const json& page : seen(folder, {"small.html"})) {
    expect_whole(page);
    EXPECT_EQ(page["sections"]["diagonals"]["charts"], 1);
    EXPECT_EQ(page["sections"]["calls"]["rows"], 2);
  }
}

// Each call of that panel alone: with a plan, of the unfused path, without a prediction.
TEST_F(Page, DrawsCountersOfOneCall) {
  const auto page_of = [&](const std::string& kernel) {
    std::istringstream panel(file(ATTEST_PANEL));
    std::string text;
    for (std::string line; std::getline(panel, line);)
      if (text.empty() || line.starts_with("mechanism,") || line.find("," + kernel + ",") != std::string::npos)
        text += line + "\n";
    folder.write(kernel + ".csv", text);
    make("measure", kernel + ".html", {"--panel", "--from", kernel + ".csv"});
  };
  for (const char* kernel : {"sm80", "unfused", "theirs.so"}) page_of(kernel);
  int pages = 0;
  for (const json& page : seen(folder, {"sm80.html", "unfused.html", "theirs.so.html"})) {
    SCOPED_TRACE(fmt::format("{} px: {}", page["width"].get<int>(), pages));
    expect_whole(page);
    const json& sections = page["sections"];
    const bool predicted = pages / 2 < 2;
    EXPECT_EQ(sections["ratios"]["charts"], predicted ? 1 : 0);
    if (predicted) {
      EXPECT_GE(sections["ratios"]["titles"], 3);
    }
    EXPECT_GE(sections["figures"]["rows"], 4);
    ++pages;
  }
  EXPECT_EQ(pages, 6);
}

TEST_F(Page, SaysAtAGlanceWhatIsRedOfANight) {
  const Ran ran =
      run_attest(words("nightly --out n --kernel mutant:22-never-causal --time 60s --steps doctor,time,fuzz"), folder);
  ASSERT_EQ(ran.exit_code, 1) << ran.err;
  folder.write("night.html", folder.read("n/index.html"));
  for (const json& page : seen(folder, {"night.html"})) {
    expect_whole(page);
    if (page["sections"].contains("figures")) {  // times that come out alike: on a machine with other work none may
      EXPECT_GE(page["sections"]["figures"]["rows"], 3);
    }
    EXPECT_EQ(page["sections"]["fuzz"]["rows"], 1);
    EXPECT_EQ(page["sections"]["steps"]["rows"], 3);
  }
}

TEST_F(Page, SaysSoWhereThereIsNothingToDraw) {
  predict("empty.html", words("--seqlen-q 0 --seqlen-k 0"));
  predict("blind.html", words("--seqlen-q 5 --seqlen-k 0"));
  predict("one.html", words("--seqlen-q 1 --seqlen-k 1 --headdim 1"));
  for (const json& page : seen(folder, {"empty.html", "blind.html", "one.html"})) {
    SCOPED_TRACE(fmt::format("{} px", page["width"].get<int>()));
    expect_whole(page);
  }
}

TEST_F(Page, TakesNamesForText) {
  std::string device = file(ATTEST_DEVICES "/h100.json");
  const std::string name = "\"NVIDIA H100 SXM5 80 GB\"";
  const std::size_t at = device.find(name);
  ASSERT_NE(at, std::string::npos);
  const std::string hostile = "</script><img src=x onerror=alert(1)><!--<script>{{data}}&lt;\u2028' \\\" \u00e9";
  device.replace(at, name.size(), "\"" + hostile + "\"");
  folder.write("evil.json", device);
  const std::vector<std::string> ask = {"--seqlen-q", "256", "--seqlen-k", "256", "--device", "evil.json"};
  predict("evil.html", ask);
  make("tune", "tuned.html", ask);
  std::vector<std::string> over = ask;
  over.insert(over.end(), {"--sweep", "batch=1..4", "--plan", "evil_plan.json"});
  folder.write("evil_plan.json", R"({"schema": "attest/plan/1", "base": "attest", "name": "<img src=x>{{data}}"})");
  predict("swept.html", over);
  std::string shown = hostile;
  shown.erase(shown.find('\\'), 1);  // JSON's own
  for (const json& page : seen(folder, {"evil.html", "tuned.html", "swept.html"})) {
    expect_whole(page);
    EXPECT_THAT(page["place"].get<std::string>(), HasSubstr(shown));
  }
}

}  // namespace
}  // namespace attest::tools
