// The page of a prediction in a browser: does it draw, on a phone and on a projector?
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "attest/simulator/device.h"
#include "page_view.h"
#include "run_attest.h"

namespace attest::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr, testing::IsEmpty;

TEST_F(Page, DrawsEveryChartOnAPhoneAndOnAProjector) {
  predict("long.html", words("--model llama-3-70b --seqlen 4096 --device h100"));
  predict("known.html",
          words("--plan fa2 --batch 4 --nheads 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 128 --device h200"));
  predict("odd.html", words("--nheads 3 --seqlen-q 1 --seqlen-k 100000 --headdim 33 --dtype fp32 --device rtx4090"));
  predict("bulk.html",
          words("--plan fa3 --batch 4 --nheads 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 64 --device h200"));
  for (const json& page : seen(folder, {"long.html", "known.html", "odd.html", "bulk.html"}, {390, 1366, 1920})) {
    SCOPED_TRACE(fmt::format("{} px: {}", page["width"].get<int>(), page["place"].get<std::string>()));
    expect_whole(page);
    expect_legible(page);
    const json& sections = page["sections"];
    for (const char* id : {"flow", "busy", "roofline", "lengths", "banks", "registers", "occupancy", "timeline"}) {
      EXPECT_GE(sections[id]["charts"], 1) << id;
      EXPECT_GE(sections[id]["marks"], 3) << id;  // of the barest chart
      EXPECT_GE(sections[id]["titles"], 3) << id;
    }
    EXPECT_EQ(sections["busy"]["charts"], 2);
    EXPECT_EQ(sections["lengths"]["charts"], 2);
    EXPECT_EQ(sections["banks"]["charts"], 4);
    EXPECT_GE(sections["figures"]["rows"], 20);
    EXPECT_GE(sections["estimates"]["rows"], 20);
  }
}

/// "+12%" as 0.12; NaN for what is no number.
double change_of(const std::string& text) {
  const std::size_t minus = text.find("\u2212");
  if (text.find('%') == std::string::npos) return NAN;
  return minus == std::string::npos ? std::stod(text) / 100 : -std::stod(text.substr(minus + 3)) / 100;
}

// Each change of each figure, in the order of the JSON, with a row an estimate above the row of every field.
TEST_F(Page, ShowsHowFarFiguresMoveWithEstimates) {
  predict("b200.html", words("--model llama-3-70b --seqlen 2048 --plan fa3 --device b200 --json b200.json"));
  predict("s4000.html",
          words("--nheads 20 --seqlen-q 500 --seqlen-k 500 --headdim 64 --device mtt-s4000 --json s4000.json"));
  predict("cores.html",
          words("--nheads 16 --seqlen-q 1024 --seqlen-k 1024 --dtype fp16 --device ascend910b --json cores.json"));
  const std::vector<json> pages = seen(folder, {"b200.html", "s4000.html", "cores.html"}, {390, 1366, 1920});
  for (std::size_t i = 0; i < pages.size(); ++i) {
    constexpr const char* reports[] = {"b200.json", "s4000.json", "cores.json"};
    SCOPED_TRACE(fmt::format("{} at {} px", reports[i / 3], pages[i]["width"].get<int>()));
    expect_whole(pages[i]);
    expect_legible(pages[i]);
    const json report = json::parse(folder.read(reports[i / 3])), &section = pages[i]["sections"]["estimates"];
    const std::size_t fields = load_device(report["device"].get<std::string>()).origins.size();
    EXPECT_EQ(section["rows"], report["hangs_on"].size() + fields);
    std::size_t k = 0;
    for (const json& estimate : report["hangs_on"])
      for (const json& figure : estimate["figures"]) {
        ASSERT_LT(k, section["changes"].size());
        const std::string shown = section["changes"][k++];
        const std::string space = "\u00a0", of_half = shown.substr(0, shown.find(space)),
                          of_twice = shown.substr(shown.rfind(space) + space.size());
        for (const bool halved : {true, false}) {
          const json& to = figure[halved ? "halved" : "doubled"];
          const double value = figure["value"], moved = to.is_null() ? NAN : to.get<double>();
          const double expected = moved == value ? 0 : value == 0 ? NAN : moved / value - 1;
          const double change = change_of(halved ? of_half : of_twice);
          EXPECT_EQ(std::isnan(change), std::isnan(expected)) << figure << shown;
          if (!std::isnan(expected)) {
            EXPECT_NEAR(change, expected, 0.0051) << figure << shown;
          }
        }
      }
    EXPECT_EQ(k, section["changes"].size());
    EXPECT_GE(k, 5u);
  }
}

// What a GPU's models count and buffers of cube and vector cores do not have stays off their page, and the other way
// round: cards, tables and charts.
TEST_F(Page, FormulasAreThoseOfTheDevice) {
  predict("gpu.html", words("--nheads 16 --seqlen-q 1024 --seqlen-k 1024 --device h200"));
  predict("cores.html", words("--nheads 16 --seqlen-q 1024 --seqlen-k 1024 --dtype fp16 --device ascend910b"));
  make("tune", "ranking.html", words("--nheads 8 --seqlen-q 512 --seqlen-k 512 --dtype fp16 --device ascend910b"));
  const std::vector<json> pages = seen(folder, {"gpu.html", "cores.html", "ranking.html"}, {1366});
  for (const json& page : pages) expect_legible(page);
  for (const char* of_gpus : {"wavefront", "spill", "ldmatrix", "SM clock", "a third", "merge on the way"})
    EXPECT_THAT(pages[0]["formulas"].get<std::string>(), HasSubstr(of_gpus));
  for (const int i : {1, 2}) {
    const std::string formulas = pages[static_cast<std::size_t>(i)]["formulas"];
    for (const char* of_gpus : {"wavefront", "spill", "ldmatrix", "SM", "a third", "CTA", "register"})
      EXPECT_EQ(formulas.find(of_gpus), std::string::npos) << of_gpus << " in\n" << formulas;
    EXPECT_THAT(formulas, HasSubstr("core clock"));
  }
  for (const char* of_cores : {"cube cores × FMA a clock", "rows of a vector core × (tile_n", "P V"})
    EXPECT_THAT(pages[1]["formulas"].get<std::string>(), HasSubstr(of_cores));
}

TEST_F(Page, CountsTheKernelsOfSplitsToo) {
  predict("whole.html", words("--nheads 8 --seqlen-q 128 --seqlen-k 4096 --headdim 64 --device h200"));
  predict("split.html", words("--nheads 8 --seqlen-q 1 --seqlen-k 65536 --headdim 64 --device h200 --auto-splits"));
  const std::vector<json> pages = seen(folder, {"whole.html", "split.html"}, {1366});
  for (const char* id : {"flow", "busy"}) {
    EXPECT_EQ(pages.at(0)["sections"][id]["kernels"][0], "1 kernel") << id;
    EXPECT_EQ(pages.at(1)["sections"][id]["kernels"][0], "2 kernels") << id;
  }
}

TEST_F(Page, ShowsTheBuffersOfCubeAndVectorCores) {
  predict("cores.html", words("--nheads 32 --seqlen-q 2048 --seqlen-k 2048 --dtype fp16 --causal --device ascend910b"));
  for (const json& page : seen(folder, {"cores.html"})) {
    expect_whole(page);
    for (const char* id : {"flow", "busy", "roofline", "lengths", "registers"})
      EXPECT_GE(page["sections"][id]["marks"], 3) << id;
    EXPECT_FALSE(page["sections"].contains("banks"));
  }
}

TEST_F(Page, CardsHoldTheirFiguresOnALaptop) {
  predict("page.html", words("--nheads 16 --seqlen-q 4096 --seqlen-k 4096 --headdim 128 --device ascend910b"));
  for (const json& page : seen(folder, {"page.html"}, {850, 1280})) expect_whole(page);
}

}  // namespace
}  // namespace attest::tools
