#include "attest/simulator/sensitivity.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "attest/problem/error.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr, testing::StartsWith;

Json file_of(const std::string& device) {
  std::ifstream in(ATTEST_DEVICES "/" + device + ".json");
  return Json::parse(in);
}

DeviceSpec read(const Json& file) { return device_from_json_text(file.dump(), file["name"].get<std::string>()); }

struct Row {
  const char *device, *plan, *fields;  // of the case
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.device << ", " << row.plan << ": " << row.fields; }

SimulationReport predicted(const Row& row, const DeviceSpec& device) {
  const Case c = case_from_json(Json::parse(row.fields));
  return simulate(c, plan_named(row.plan, c, device), device, row.plan);
}

/// The numbers of the answer under their places in its JSON, its parts' own left out but for the unfused path's.
std::map<std::string, double> numbers(const SimulationReport& r) {
  std::map<std::string, double> found;
  const Json flat = to_json(r).flatten();
  for (const auto& [place, value] : flat.items()) {
    std::string name = place.substr(1);
    if (name.starts_with("unfused/")) name[7] = '.';
    if (value.is_number() && name.find('/') == std::string::npos) found[name] = value.get<double>();
  }
  return found;
}

/// The field times `factor` in a device's file, as near to it as the refusals of what is tried first allow; of a list
/// every second number. Returns why it is refused in the end.
std::string move(Json& file, const std::string& field, double factor) {
  Json& value = file["fields"][field]["value"];
  const Json as_it_was = value;
  double low = -1e300, high = 1e300;
  bool whole = false, over_mean = false;
  const auto moved = [&](const Json& x) {
    const double target = factor * x.get<double>();
    return std::min(high, std::max(low, whole ? std::floor(target) : target));
  };
  while (true) {
    if (value.is_array())
      for (std::size_t i = 1; i < value.size(); i += 2) value[i] = moved(as_it_was[i]);
    else
      value = moved(as_it_was);
    if (over_mean) {
      const auto list = value.get<std::vector<double>>();
      for (Json& x : value)
        x = x.get<double>() / (std::accumulate(list.begin(), list.end(), 0.0) / static_cast<double>(list.size()));
    }
    try {
      read(file);
      return "";
    } catch (const InvalidInput& error) {
      std::string why = error.what();
      const std::size_t limits = why.find(" is outside ");
      if (!whole && why.find("whole number") != std::string::npos)
        whole = true;
      else if (!over_mean && why.find("gpc_clocks: an average of") != std::string::npos)
        over_mean = true;
      else if (low != -1e300 || limits == std::string::npos ||
               std::sscanf(why.c_str() + limits, " is outside %lf to %lf", &low, &high) != 2)
        return why;
    }
  }
}

class Sensitivity : public testing::TestWithParam<Row> {};
constexpr Row rows[] = {
    {"b200", "fa3", R"({"nheads": 24, "seqlen_q": 2048, "seqlen_k": 2048, "headdim": 128})"},
    {"b200", "attest",
     R"({"batch": 3, "nheads": 8, "nheads_k": 2, "seqlen_q": 64, "seqlen_k": 3000, "causal": "bottom-right"})"},
    {"mtt-s4000", "fa2", R"({"nheads": 20, "seqlen_q": 1500, "seqlen_k": 1500, "headdim": 64, "alibi": true})"},
    {"h100", "attest", R"({"nheads": 32, "seqlen_q": 1024, "seqlen_k": 1024, "headdim": 128, "page_size": 64})"},
    {"a100", "attest",
     R"({"batch": 2, "nheads": 16, "seqlen_q": 1024, "seqlen_k": 1024, "headdim": 128, "page_size": 64})"},
    {"orin-agx", "fa2", R"({"nheads": 4, "seqlen_q": 1, "seqlen_k": 20000, "headdim": 128, "num_splits": 7})"},
    {"ascend910b", "attest", R"({"nheads": 32, "seqlen_q": 4096, "seqlen_k": 4096, "headdim": 128, "dtype": "fp16"})"},
    {"h100", "fa3", R"({"nheads": 2, "seqlen_q": 128, "seqlen_k": 128, "headdim": 64})"},
};
INSTANTIATE_TEST_SUITE_P(Devices, Sensitivity, testing::ValuesIn(rows), [](const auto& p) {
  std::string name = std::string(p.param.device) + "_" + p.param.plan + "_" + std::to_string(p.index);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Files with one field moved, read and predicted from: what moves is what is named, and nothing else.
TEST_P(Sensitivity, NamesWhatMovesInDeviceFiles) {
  const Json file = file_of(GetParam().device);
  const SimulationReport report = predicted(GetParam(), read(file));
  const auto before = numbers(report);
  std::map<std::string, const Estimate*> named;
  const std::vector<Estimate> behind = estimates_behind(report);
  for (const Estimate& e : behind) EXPECT_TRUE(named.emplace(e.field, &e).second) << e.field << " is named twice";
  int moving = 0;
  for (const auto& [field, entry] : file["fields"].items()) {
    SCOPED_TRACE(field);
    if (!entry.contains("estimated")) {
      EXPECT_FALSE(named.contains(field)) << "it has a source";
      continue;
    }
    std::map<std::string, double> after[2];
    std::string refused[2];
    for (const int i : {0, 1}) {
      Json changed = file;
      refused[i] = move(changed, field, i == 0 ? 0.5 : 2);
      if (!refused[i].empty()) continue;
      try {
        after[i] = numbers(simulate(report.c, report.plan, read(changed), report.plan_name));
      } catch (const InvalidInput& error) {
        refused[i] = error.what();
      }
    }
    std::map<std::string, std::pair<double, double>> moves, told;  // NaN where refused
    for (const auto& figure : before) {
      const auto of = [&](int i) { return refused[i].empty() ? after[i].at(figure.first) : NAN; };
      const auto far = [&](double x) { return std::abs(x - figure.second) > 0.01 * std::abs(figure.second); };
      if (far(of(0)) || far(of(1))) moves[figure.first] = {of(0), of(1)};
    }
    moving += moves.empty() ? 0 : 1;
    const bool any = !moves.empty() || !refused[0].empty() || !refused[1].empty();
    ASSERT_EQ(named.contains(field), any);
    if (!any) continue;
    const Estimate& e = *named.at(field);
    for (const FigureMove& f : e.figures) {
      EXPECT_EQ(f.value, before.at(f.name));
      told[f.name] = {f.halved.value_or(NAN), f.doubled.value_or(NAN)};
    }
    EXPECT_EQ(Json(told).dump(), Json(moves).dump());  // NaN as null
    EXPECT_EQ(e.halved_refused, refused[0]);
    EXPECT_EQ(e.doubled_refused, refused[1]);
    EXPECT_EQ(e.why, entry["estimated"]);
  }
  EXPECT_GE(moving, 1);
}

TEST_P(Sensitivity, AFieldWithASourceIsNeverNamed) {
  Json file = file_of(GetParam().device);
  const auto why = [](Json& entry, const char* now) {
    const Json text = entry.contains("source") ? entry["source"] : entry["estimated"];
    entry.erase("source"), entry.erase("estimated");
    entry[now] = text;
  };
  for (auto& [field, entry] : file["fields"].items()) why(entry, "source");
  SimulationReport report = predicted(GetParam(), read(file));
  report.hangs_on = estimates_behind(report);
  EXPECT_TRUE(report.hangs_on->empty());
  EXPECT_THAT(to_table(report), HasSubstr("no field of " + report.device.name + " is an estimate"));
  const char* const clock = file.contains("kind") ? "core_clock_hz" : "sm_clock_hz";
  why(file["fields"][clock], "estimated");
  const std::vector<Estimate> behind = estimates_behind(predicted(GetParam(), read(file)));
  ASSERT_EQ(behind.size(), 1u);
  EXPECT_EQ(behind[0].field, clock);
  EXPECT_THAT(behind[0].figures, testing::Contains(testing::Field(&FigureMove::name, "unfused.time_us")));
}

TEST(SensitivityReport, SaysWhatMovesMostFirstAndWhatIsRefused) {
  SimulationReport report = predicted(rows[2], load_device("mtt-s4000"));
  EXPECT_TRUE(to_json(report)["hangs_on"].is_null());
  const Json fields = file_of("mtt-s4000")["fields"];
  const auto estimated = static_cast<std::size_t>(
      std::count_if(fields.begin(), fields.end(), [](const Json& field) { return field.contains("estimated"); }));
  EXPECT_EQ(to_json(report)["estimated_fields"], estimated);
  EXPECT_THAT(to_table(report), HasSubstr(std::to_string(estimated) + " of the " + std::to_string(fields.size()) +
                                          " fields of mtt-s4000 are estimates; --sensitivity says"));
  std::size_t heard = 0;
  report.hangs_on = estimates_behind(report, [&](std::size_t done, std::size_t of) {
    EXPECT_EQ(done, ++heard);
    EXPECT_EQ(of, 2 * estimated);
  });
  EXPECT_EQ(heard, 2 * estimated);
  const Json hangs_on = to_json(report)["hangs_on"];
  double before = INFINITY;
  for (const Json& e : hangs_on) {
    double most = 0;
    for (const Json& f : e["figures"])
      for (const char* to : {"halved", "doubled"})
        if (!f[to].is_null()) most = std::max(most, std::abs(f[to].get<double>() / f["value"].get<double>() - 1));
    EXPECT_LE(most, before) << e["field"];
    before = most;
  }
  const auto smem =
      std::find_if(hangs_on.begin(), hangs_on.end(), [](auto& e) { return e["field"] == "smem_bytes_per_cta_max"; });
  ASSERT_NE(smem, hangs_on.end());
  EXPECT_THAT((*smem)["halved_refused"].get<std::string>(), StartsWith("tile_m: "));
  EXPECT_THAT((*smem)["doubled_refused"].get<std::string>(), HasSubstr("must not exceed smem_bytes_per_sm = 28672"));
  const auto clock =
      std::find_if(hangs_on.begin(), hangs_on.end(), [](auto& e) { return e["field"] == "sm_clock_hz"; });
  for (const Json& f : clock->at("figures")) {
    if (f["name"] != "time_us") continue;
    EXPECT_GT(f["halved"], f["value"]);
    EXPECT_LT(f["doubled"], f["value"]);
  }
  const std::string table = to_table(report);
  EXPECT_THAT(table, HasSubstr("halved / doubled, these move figures by more than 1%:"));
  EXPECT_THAT(table, testing::ContainsRegex("\n  sm_clock_hz +.*time_us \\+[0-9]+% / -[0-9]+%"));
}

// What was read in the call before stays read where a field is moved.
TEST(SensitivityReport, AWarmAnswerIsHeldAgainstWarmOnes) {
  const SimulationReport cold = predicted(rows[7], load_device("h200"));
  TileWalkOptions effort;
  effort.warm = true;
  const SimulationReport warm = simulate(cold.c, cold.plan, cold.device, cold.plan_name, effort);
  ASSERT_LT(warm.dram_read_bytes, cold.dram_read_bytes);
  for (const Estimate& e : estimates_behind(warm)) EXPECT_NE(e.field, "smem_latency_cycles");  // which nothing reads
}

}  // namespace
}  // namespace attest
