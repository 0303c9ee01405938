// The pages of `--html` in a browser: do they draw, on a phone and on a projector?
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attest/simulator/device.h"
#include "run_attest.h"

namespace attest::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr, testing::IsEmpty;

struct Shell {
  int status;
  std::string out;
};
Shell shell(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string out;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    const Shell found = shell(fmt::format("command -v {}", name));
    if (found.status == 0) return found.out.substr(0, found.out.find('\n'));
  }
  return "";
}

std::string file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// What page_check.js sees of each page in `folder`, first 390 and then 1920 pixels wide.
std::vector<json> seen(const Folder& folder, const std::vector<std::string>& pages,
                       const std::vector<int>& widths = {390, 1920}) {
  std::string frames;
  for (const std::string& page : pages) {
    std::string text = folder.read(page);
    const std::string head = "<head>";
    text.insert(text.find(head) + head.size(), "<script>" + file(ATTEST_PAGE_CHECK) + "</script>");
    folder.write("checked_" + page, text);
    for (const int width : widths)
      frames +=
          fmt::format("<iframe src='checked_{}' style='width:{}px;height:900px;border:0'></iframe>\n", page, width);
  }
  // messages name their frame by its place among all
  folder.write("frames.html",
               "<body><pre id=seen></pre><script>const all = [];addEventListener('message', (e) => {"
               "const i = [...document.querySelectorAll('iframe')].findIndex((f) => f.contentWindow === e.source);"
               "all[i] = e.data; document.getElementById('seen').textContent = 'SEEN[' + all.join(',') + ']SEEN';});"
               "</script>" +
                   frames);
  const Shell dump = shell(
      fmt::format("timeout 100 '{}' --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir='{}' "
                  "--virtual-time-budget=20000 --dump-dom 'file://{}' 2>/dev/null",
                  browser(), (folder.path() / "profile").string(), (folder.path() / "frames.html").string()));
  const std::size_t begin = dump.out.find("SEEN["), end = dump.out.find("]SEEN");
  if (end == std::string::npos) throw std::runtime_error("the browser saw nothing: " + dump.out.substr(0, 500));
  return json::parse(dump.out.substr(begin + 4, end - begin - 3)).get<std::vector<json>>();
}

/// Every mark of every chart says on hover how its figure is made, and no line of a table or card ends within a word.
void expect_legible(const json& page) {
  for (const auto& [id, section] : page["sections"].items())
    EXPECT_THAT(section["untold"], IsEmpty()) << id << ": " << section["untold"];
  EXPECT_THAT(page["parted"], IsEmpty()) << page["parted"];
}

void expect_whole(const json& page) {
  EXPECT_THAT(page["errors"], IsEmpty()) << page["errors"];
  EXPECT_LE(page["overflow"], 0) << "wider than its window";
  EXPECT_THAT(page["clipped"], IsEmpty()) << page["clipped"];
  EXPECT_EQ(page["foreign"], 0) << "something that is loaded, or markup that came in through a name";
  for (const auto& [id, section] : page["sections"].items()) {
    SCOPED_TRACE(id);
    EXPECT_THAT(section["misplaced"], IsEmpty()) << section["misplaced"];
    EXPECT_FALSE(section["unreadable"]);
    EXPECT_GT(section["words"], 20);
  }
}

class Page : public testing::Test {
 protected:
  void SetUp() override {
    if (browser().empty()) GTEST_SKIP() << "no browser here; tools/setup.sh test installs chromium";
  }
  void predict(const std::string& page, std::vector<std::string> arguments) {
    make("predict", page, std::move(arguments));
  }
  void make(const std::string& command, const std::string& page, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {command, "--html", page});
    const Ran ran = run_attest(arguments, folder);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
  Folder folder;
};

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
    EXPECT_EQ(page["place"], "NVIDIA H200 <b>");
  }
}

TEST_F(Page, SaysAtAGlanceWhatIsRedOfANight) {
  const Ran ran =
      run_attest(words("nightly --out n --kernel mutant:22-never-causal --time 5s --steps doctor,time,fuzz"), folder);
  ASSERT_EQ(ran.exit_code, 1) << ran.err;
  folder.write("night.html", folder.read("n/index.html"));
  for (const json& page : seen(folder, {"night.html"})) {
    expect_whole(page);
    EXPECT_GE(page["sections"]["figures"]["rows"], 3);
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
