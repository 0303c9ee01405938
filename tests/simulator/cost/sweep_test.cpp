#include "attest/simulator/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attest/problem/error.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

Texts texts(std::string_view text) {
  Texts all;
  for (const SweepValue& value : parse_sweep(text).values) all.push_back(value.text);
  return all;
}

TEST(Sweep, ReadsRangesAndLists) {
  EXPECT_EQ(texts("seqlen=512..4096:x2"), (Texts{"512", "1024", "2048", "4096"}));
  EXPECT_EQ(texts("seqlen=512..4095:x2"), (Texts{"512", "1024", "2048"}));
  EXPECT_EQ(texts("batch=1..10:+3"), (Texts{"1", "4", "7", "10"}));
  EXPECT_EQ(texts("batch=2..4"), (Texts{"2", "3", "4"}));
  EXPECT_EQ(texts("batch=5..5:x3"), (Texts{"5"}));
  EXPECT_EQ(texts("headdim=128,64,129"), (Texts{"128", "64", "129"}));
  EXPECT_EQ(parse_sweep("window-left=-1,64").field, "window_left");
  EXPECT_EQ(texts("tile_n=16..128:x2").size(), 4u);
  EXPECT_EQ(texts("seed=1..1000").size(), most_sweep_points);
  EXPECT_EQ(texts("seed=18446744073709551615"), (Texts{"18446744073709551615"}));
  // the last value that is below the end, and no overflow on the way there
  EXPECT_EQ(texts("seqlen=4611686018427387904..9223372036854775807:x2").size(), 1u);
  EXPECT_EQ(texts("seqlen=9223372036854775806..9223372036854775807:+2").size(), 1u);
}

TEST(Sweep, ReadsRealRangesWithoutDrift) {
  EXPECT_EQ(texts("softcap=10..50:+12.5"), (Texts{"10", "22.5", "35", "47.5"}));
  EXPECT_EQ(texts("softmax_scale=0.1..1:+0.1").back(), "1");
  EXPECT_EQ(texts("softmax_scale=0.1..1:+0.1").size(), 10u);
  EXPECT_EQ(texts("softmax-scale=0.25..2:x2"), (Texts{"0.25", "0.5", "1", "2"}));
  EXPECT_EQ(texts("softmax_scale=1e-3..1e-1:x10"), (Texts{"0.001", "0.01", "0.1"}));
  EXPECT_EQ(texts("dram_bytes_per_second=1e12..4e12:x2"), (Texts{"1e+12", "2e+12", "4e+12"}));
  EXPECT_TRUE(parse_sweep("softcap=0,30.5").numeric());
}

TEST(Sweep, ReadsWordsSwitchesAndLists) {
  EXPECT_EQ(texts("dtype=fp16,bf16"), (Texts{"fp16", "bf16"}));
  EXPECT_EQ(texts("causal=none,top-left,bottom-right").size(), 3u);
  EXPECT_EQ(texts("swizzled=true,false"), (Texts{"true", "false"}));
  EXPECT_EQ(texts("varlen_k=[1,2],[64,64,3]"), (Texts{"[1,2]", "[64,64,3]"}));
  EXPECT_EQ(texts("page_table=[[0],[1,2]]"), (Texts{"[[0],[1,2]]"}));
  EXPECT_EQ(texts("layout=\"bhsd,row_gap=8\",bshd"), (Texts{"bhsd,row_gap=8", "bshd"}));
  EXPECT_EQ(texts("plan=\"[\",fa2"), (Texts{"[", "fa2"}));
  EXPECT_EQ(texts("device=./a.json,../b.json"), (Texts{"./a.json", "../b.json"}));
  EXPECT_FALSE(parse_sweep("dtype=fp16").numeric());
  EXPECT_FALSE(parse_sweep("plan=fa2,fa3").numeric());
}

// The field of a case, of a plan or of a device: no list of names but theirs.
TEST(Sweep, KnowsEveryFieldOfCasePlanAndDevice) {
  for (const std::string& name : case_field_names())
    EXPECT_EQ(parse_sweep(name + "=1").of, SweepAxis::Of::case_field) << name;
  for (const PlanField& field : plan_fields()) {
    const std::string name(field.name);
    if (name == "element_bytes") continue;  // the case's dtype
    const auto words = plan_words(field);
    const std::string value = words.empty() ? plan_text(KernelPlan{}, field) : std::string(words[0]);
    const auto of = name.starts_with("headdim") ? SweepAxis::Of::case_field : SweepAxis::Of::plan_field;
    EXPECT_EQ(parse_sweep(name + "=" + value).of, of) << name;
  }
  for (const std::string_view name : device_field_names())
    EXPECT_EQ(parse_sweep(std::string(name) + "=1").of, SweepAxis::Of::device_field) << name;
}

TEST(Sweep, RefusesNonsenseByName) {
  for (const char* bad : {"",
                          "seqlen",
                          "seqlen=",
                          "=1,2",
                          "seqlens=1,2",
                          "dropout=0.1",
                          "schema=1",
                          "element_bytes=1,2",
                          "seqlen=1..",
                          "seqlen=..4",
                          "seqlen=1..4:",
                          "seqlen=1..4:2",
                          "seqlen=1..4:x",
                          "seqlen=1..4:x1",
                          "seqlen=1..4:x0",
                          "seqlen=1..4:x-2",
                          "seqlen=1..4:+0",
                          "seqlen=1..4:+-1",
                          "seqlen=4..1",
                          "seqlen=0..8:x2",
                          "seqlen=-4..8:x2",
                          "seqlen=1,,2",
                          "seqlen=1,2,",
                          "seqlen=1,1",
                          "dtype=fp16,fp16",
                          "dtype=fp16..bf16",
                          "dtype=\xff",
                          "dtype=fp16\n",
                          "softcap=1.5..",
                          "softcap=4.5..1",
                          "softcap=1..2.5:x1",
                          "softcap=1..2.5:x.5",
                          "softcap=1..2.5:+0.0",
                          "softcap=1..2.5:+-0.5",
                          "softcap=0.0..8:x2",
                          "softcap=1..1e999:x2",
                          "softcap=0..1:+1e-9",
                          "softcap=1..2:+nan",
                          "softcap=1.0..inf",
                          "seed=1..1001",
                          "seed=0..9223372036854775807",
                          "seqlen=1..99999999999999999999:x2",
                          "seqlen=1..4:x99999999999999999999"}) {
    try {
      (void)parse_sweep(bad);
      FAIL() << bad;
    } catch (const InvalidInput& error) {
      EXPECT_EQ(error.field(), "sweep") << bad;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

std::vector<SweepPoint> swept(const char* axis, const Json& fields, const char* plan = "attest",
                              const char* device_name = "h200") {
  const DeviceSpec device = load_device(device_name);
  return sweep(parse_sweep(axis), fields, device, [&](const Case& c, const DeviceSpec& d, std::string_view name) {
    return load_plan(name.empty() ? plan : std::string(name), c, d);
  });
}

TEST(Sweep, EachPointIsThePredictionOfItsCase) {
  const DeviceSpec device = load_device("h200");
  const Json fields = {{"nheads", 4}, {"headdim", 128}, {"seqlen_q", 7}};
  const auto points = swept("seqlen=256..1024:x2", fields);
  ASSERT_EQ(points.size(), 3u);
  for (const SweepPoint& point : points) {
    Case c;
    c.problem.nheads = c.problem.nheads_k = 4;
    c.problem.headdim = c.problem.headdim_v = 128;
    c.problem.seqlen_q = c.problem.seqlen_k = std::stoll(point.value.text);
    const SimulationReport alone = simulate(c, plan_named("attest", c, device), device);
    ASSERT_TRUE(point.report.has_value()) << point.refused;
    EXPECT_EQ(figures_json(*point.report), figures_json(alone));
  }
  EXPECT_DOUBLE_EQ(points[2].report->flops, 16 * points[0].report->flops);
}

TEST(Sweep, TakesFieldsOfEveryTypeAndKind) {
  const Json fields = {{"seqlen_q", 192}, {"nheads", 2}};
  for (const char* text : {"seed=1,18446744073709551615",
                           "seqlen=1,2",
                           "batch=1,2",
                           "window=-1,2",
                           "nheads=2,4",
                           "base_offset=0,8",
                           "dtype=fp16,bf16,fp32",
                           "causal=none,top-left,bottom-right",
                           "softcap=0,30.5",
                           "softmax_scale=0.125..1:x2",
                           "alibi=true,false",
                           "bias=none,bhqk",
                           "varlen_k=[1],[64]",
                           "documents=[192],[64,128]",
                           "layout=\"bhsd,row_gap=8\",bshd",
                           "inputs=normal,large",
                           "page_size=0,16",
                           "num_splits=1,4",
                           "swizzled=true,false",
                           "copy_kind=cp_async,synchronous",
                           "persistence=none,static_stride,dynamic",
                           "tile_m=64,128",
                           "stages=2,3",
                           "key_order=ascending,descending",
                           "dram_bytes_per_second=1e12..4e12:x2",
                           "l2_bytes=25165824,50331648",
                           "exp_per_clock=8..32:x2",
                           "device=a100,h100,ascend910b",
                           "plan=attest,fa2"}) {
    const SweepAxis axis = parse_sweep(text);
    const auto points = swept(text, fields);
    ASSERT_EQ(points.size(), axis.values.size());
    for (const SweepPoint& point : points)
      EXPECT_TRUE(point.report) << text << " " << point.value.text << ": " << point.refused;
  }
}

// A value reaches the field that it is of, and what hangs on that field follows.
TEST(Sweep, ValuesReachTheirFields) {
  const Json fields = {{"nheads", 64}, {"headdim", 128}, {"seqlen_q", 2048}};
  const auto dtype = swept("dtype=fp32,fp16", fields);
  EXPECT_EQ(dtype[0].report->compulsory_bytes, 2 * dtype[1].report->compulsory_bytes - 64 * 2048 * 4);  // LSE stays
  const auto causal = swept("causal=none,bottom-right", fields);
  EXPECT_GT(causal[0].report->flops, 1.9 * causal[1].report->flops);
  EXPECT_EQ(swept("softcap=0,30.5", fields)[1].report->c.problem.softcap, 30.5);
  const auto swizzled = swept("swizzled=true,false", fields);
  EXPECT_GT(swizzled[1].report->smem_wavefronts, 2 * swizzled[0].report->smem_wavefronts);
  const auto dram = swept("dram_bytes_per_second=1e10,1e11", fields);
  EXPECT_GT(dram[0].report->time_us, 5 * dram[1].report->time_us);
  EXPECT_EQ(dram[0].report->device.origin("dram_bytes_per_second").text, "--sweep");
  const auto devices = swept("device=a100,h200", fields);
  EXPECT_EQ(devices[0].report->device.name, "a100");
  EXPECT_EQ(devices[1].report->device.num_sms, 132);
  const auto plans = swept("plan=fa2,fa3", fields);
  EXPECT_EQ(plans[0].report->plan.matrix_kind, MatrixKind::mma_sync);
  EXPECT_EQ(plans[1].report->plan.matrix_kind, MatrixKind::wgmma);
}

TEST(Sweep, BadValuesAreRefusedByTheFieldWithItsLimit) {
  struct Row {
    const char *sweep, *field, *message;
  };
  const Row rows[] = {
      {"dtype=fp16,fp17", "dtype", "fp17"},
      {"causal=yes", "causal", "yes"},
      {"softcap=1..1e7:x1e7", "softcap", "10000000"},
      {"headdim=64.5,65", "headdim", "64.5 is not an integer"},
      {"alibi=1", "alibi", "1 is neither true nor false"},
      {"varlen_k=[1,-1]", "varlen_k[1]", "-1"},
      {"swizzled=true,ture", "swizzled", "\"ture\" must be true or false"},
      {"copy_kind=dma", "copy_kind", "must be one of cp_async, synchronous, tma"},
      {"tile_m=wide", "tile_m", "must be a number"},
      {"dram_bytes_per_second=0", "dram_bytes_per_second.value", "0 is outside 1000000 to 1e+18"},
      {"num_sms=1.5,2", "num_sms.value", "1.5 must be a whole number"},
      {"unified_buffer_bytes=1024", "unified_buffer_bytes", "this device is of the other kind"},
      {"device=h100,h300", "device", "'h300' is none of a100, ascend910b"},
  };
  for (const Row& row : rows) {
    try {
      (void)swept(row.sweep, {{"seqlen_q", 64}});
      ADD_FAILURE() << row.sweep << " is taken";
    } catch (const InvalidInput& error) {
      EXPECT_EQ(error.field(), row.field) << error.what();
      EXPECT_NE(std::string(error.what()).find(row.message), std::string::npos) << error.what();
    }
  }
}

TEST(Sweep, OfAPlansFieldSaysWhatDoesNotFit) {
  const auto points = swept("stages=1..6", {{"headdim", 96}, {"seqlen_q", 256}}, "attest", "a100");
  ASSERT_EQ(points.size(), 6u);
  EXPECT_EQ(points[0].report->plan.stages, 1);
  EXPECT_GT(points[1].report->smem_bytes_per_cta, points[0].report->smem_bytes_per_cta);
  EXPECT_NE(points[5].refused.find("stages: 6 is outside 1 to 4"), std::string::npos) << points[5].refused;
}

TEST(Sweep, ACaseThatIsNoneIsRefusedBeforeAnythingIsPredicted) {
  EXPECT_THROW(swept("headdim=64,300", {{"seqlen_q", 64}}), InvalidInput);
  EXPECT_THROW(swept("nheads_k=1..3", {{"nheads", 4}, {"seqlen_q", 64}}), InvalidInput);
  EXPECT_THROW(swept("seqlen=4611686018427387904,1", {{"nheads", 4}}), InvalidInput);
  EXPECT_THROW(swept("batch=0,-1", Json::object()), InvalidInput);
  EXPECT_THROW(swept("seqlen=1.5,2", Json::object()), InvalidInput);
  EXPECT_THROW(swept("seqlen=1e3", Json::object()), InvalidInput);
}

TEST(Sweep, TableCsvAndJsonHaveARowAPoint) {
  const SweepAxis words = parse_sweep("dtype=bf16,fp32");
  const auto typed = swept("dtype=bf16,fp32", {{"seqlen_q", 64}});
  EXPECT_EQ(to_json(words, typed)[1]["dtype"], "fp32");
  EXPECT_NE(to_csv(words, typed).find("\nfp32,"), std::string::npos);
  EXPECT_NE(to_table(words, typed).find("        fp32 "), std::string::npos);
  const SweepAxis lists = parse_sweep("varlen_k=[1,2]");
  const auto listed = swept("varlen_k=[1,2]", {{"seqlen_q", 64}});
  EXPECT_EQ(to_json(lists, listed)[0]["varlen_k"], Json({1, 2}));
  EXPECT_NE(to_csv(lists, listed).find("\n\"[1,2]\","), std::string::npos);
  const SweepAxis axis = parse_sweep("stages=1,4");
  const auto points = swept("stages=1,4", {{"headdim", 256}, {"seqlen_q", 256}}, "attest", "a100");
  const std::string csv = to_csv(axis, points), table = to_table(axis, points);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  EXPECT_TRUE(csv.starts_with("stages,time_us,cycles,")) << csv;
  const auto columns = [&](std::string line) {  // commas outside quotes
    bool quoted = false;
    return std::count_if(line.begin(), line.end(), [&](char c) {
      if (c == '"') quoted = !quoted;
      return c == ',' && !quoted;
    });
  };
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);)
    EXPECT_EQ(columns(line), static_cast<std::ptrdiff_t>(report_figures().size()) + 3) << line;
  const Json json = to_json(axis, points);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["stages"], 1);
  EXPECT_TRUE(json[0]["time_us"].is_number());
  EXPECT_FALSE(json[1]["refused"].get<std::string>().empty());
}

}  // namespace
}  // namespace attest
