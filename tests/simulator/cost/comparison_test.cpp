// Predicted beside measured: which counter stands beside which figure, and the maths of their errors.
#include "attest/simulator/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attest/problem/error.h"
#include "attest/simulator/report.h"

namespace attest {
namespace {

using testing::HasSubstr, testing::Not;

const ComparedFigure& figure(const Comparison& comparison, std::string_view name) {
  const auto found = std::find_if(comparison.figures.begin(), comparison.figures.end(),
                                  [&](const ComparedFigure& f) { return f.name == name; });
  if (found == comparison.figures.end()) throw std::logic_error(std::string(name));
  return *found;
}

/// A call that was counted exactly as it is predicted but for `factor`.
MeasuredCall counted(const char* mechanism, std::int64_t heads, double factor) {
  MeasuredCall call;
  call.mechanism = mechanism;
  call.kernel = "sm80";
  Problem& p = call.c.problem;
  p.nheads = p.nheads_k = heads;
  p.seqlen_q = p.seqlen_k = 512;
  const DeviceSpec h200 = load_device("h200");
  const SimulationReport r = simulate(call.c, plan_named("attest", call.c, h200), h200);
  call.launches = {{"f",
                    {{"dram__bytes_read.sum", r.dram_read_bytes / factor},
                     {"lts__t_sectors_srcunit_tex_op_read.sum", r.l2_read_bytes / 32},
                     {"gpu__time_duration.sum", 1000 * r.time_us},
                     {"sm__cycles_elapsed.max", r.cycles}}}};
  return call;
}

TEST(Comparison, FiguresStandBesideTheirCountersInOneUnit) {
  const DeviceSpec h200 = load_device("h200");
  const Comparison c = compare(counted("a", 8, 1.25), h200, nullptr);
  EXPECT_EQ(c.plan_name, "attest");
  EXPECT_EQ(c.unpredicted, "");
  EXPECT_DOUBLE_EQ(*figure(c, "dram_read_bytes").ratio(), 1.25);
  EXPECT_DOUBLE_EQ(*figure(c, "l2_read_bytes").ratio(), 1);
  EXPECT_DOUBLE_EQ(*figure(c, "time_us").ratio(), 1);
  EXPECT_DOUBLE_EQ(*figure(c, "cycles").ratio(), 1);
  EXPECT_DOUBLE_EQ(*figure(c, "kernels").ratio(), 1);
  EXPECT_FALSE(figure(c, "sm_read_bytes").ratio()) << "it was not measured";
  EXPECT_GT(figure(c, "l2_crossing_bytes").predicted, 0);
  const auto json = to_json(c);
  EXPECT_EQ(json["figures"][0]["name"], "dram_read_bytes");
  EXPECT_DOUBLE_EQ(json["figures"][0]["ratio"], 1.25);
  EXPECT_DOUBLE_EQ(json["figures"][0]["error"], 0.25);
  EXPECT_TRUE(json["figures"][2]["measured"].is_null());
  EXPECT_THAT(to_table(c), HasSubstr("dram__bytes_read.sum"));
}

// A file may say anything: what our own kernels do not run was not counted of them.
TEST(Comparison, CallsThatOurKernelDoesNotRunAreRefused) {
  MeasuredCall call;
  call.launches.resize(1);
  const auto refused = [&](const char* kernel, auto change) {
    call.kernel = kernel, call.c = {};
    change(call.c);
    try {
      compare(call, load_device("h200"), nullptr);
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused("sm80", [](Case& c) { c.problem.dtype = Dtype::fp32; }),
            "dtype: 'fp32' is neither fp16 nor bf16, and kernel sm80 takes nothing else");
  EXPECT_EQ(refused("sm80-spill",
                    [](Case& c) { c.problem.headdim = c.problem.headdim_v = 128, c.problem.dtype = Dtype::fp16; }),
            "dtype: 'fp16' is not bf16, and kernel sm80-spill takes nothing else");
  EXPECT_EQ(refused("sm80-spill",
                    [](Case& c) { c.problem.headdim = c.problem.headdim_v = 64, c.problem.dtype = Dtype::bf16; }),
            "headdim: 64 is outside 97 to 128, and kernel sm80-spill takes nothing else");
  EXPECT_EQ(refused("sm80-no-skip", [](Case& c) { c.backward = true; }),
            "backward: true is not false, and kernel sm80-no-skip takes nothing else");
  EXPECT_EQ(refused("sm80", [](Case& c) { c.problem.batch = 70'000; }),
            "batch: 70000 is above a grid's 65535, and kernel sm80 takes nothing else");
  EXPECT_EQ(refused("unfused", [](Case& c) { c.problem.dtype = Dtype::fp8_e4m3; }),
            "dtype: 'fp8_e4m3' is none of fp16, bf16, fp32, and kernel unfused takes nothing else");
  EXPECT_EQ(refused("unfused", [](Case& c) { c.num_splits = 2; }),
            "num_splits: 2 is above 1, and kernel unfused takes nothing else");
  EXPECT_EQ(refused("unfused", [](Case& c) { c.problem.batch = 1 << 24, c.problem.nheads = c.problem.nheads_k = 128; }),
            "batch: 16777216 makes more blocks than a grid's 2147483648, and kernel unfused takes nothing else");
  EXPECT_EQ(refused("unfused", [](Case& c) { c.backward = true; }),
            "backward: true is not false, and kernel unfused takes nothing else");
  EXPECT_EQ(refused("mine", [](Case& c) { c.problem.dtype = Dtype::fp32; }), "");
}

// What did not happen has no ratio, and what cannot have been is refused.
TEST(Comparison, CountersOfNothing) {
  const DeviceSpec h200 = load_device("h200");
  MeasuredCall call = counted("a", 8, 1);
  call.launches[0].counters["dram__bytes_read.sum"] = 0;
  const Comparison c = compare(call, h200, nullptr);
  EXPECT_EQ(figure(c, "dram_read_bytes").ratio(), std::nullopt);
  EXPECT_TRUE(to_json(c)["figures"][0]["ratio"].is_null());
  EXPECT_THAT(to_table(c), HasSubstr("of 0"));
  EXPECT_THAT(to_table({c}), HasSubstr("of 0"));
  call.launches[0].counters["dram__bytes_read.sum"] = 1e-9;
  for (const std::string& table : {to_table(compare(call, h200, nullptr)), to_table({compare(call, h200, nullptr)})}) {
    EXPECT_THAT(table, HasSubstr("e+"));
    EXPECT_THAT(table, Not(HasSubstr("inf")));
  }
  call.launches[0].counters["gpu__time_duration.sum"] = 1e18;
  try {
    compare(call, h200, nullptr);
    ADD_FAILURE() << "a clock of a few hertz";
  } catch (const InvalidInput& error) {
    EXPECT_EQ(error.field(), "sm_clock_hz.value");
    EXPECT_THAT(error.what(), HasSubstr("(in sm__cycles_elapsed.max over gpu__time_duration.sum)"));
  }
}

TEST(Comparison, APlanOfSomebodyElsesKernelPredictsIt) {
  const DeviceSpec h200 = load_device("h200");
  MeasuredCall call = counted("a", 8, 1);
  call.kernel = "theirs";
  EXPECT_THAT(compare(call, h200, nullptr).unpredicted, HasSubstr("--plan"));
  const DescribedPlan plan{"fa2", plan_named("fa2", call.c, h200)};
  const Comparison c = compare(call, h200, &plan);
  EXPECT_EQ(c.plan_name, "fa2");
  EXPECT_EQ(figure(c, "registers_per_thread").predicted, 255);
  call.c.backward = true;
  EXPECT_THAT(compare(call, h200, &plan).unpredicted, HasSubstr("backward"));
}

// At headdim 192 our kernel copies whole tiles of V under P0, a wavefront for each 128 bytes.
TEST(Comparison, WavefrontsAreThoseThatTheCountersOfOurKernelsSee) {
  const DeviceSpec h200 = load_device("h200");
  MeasuredCall call = counted("a", 8, 1);
  call.c.problem.headdim = call.c.problem.headdim_v = 192;
  const Comparison ours = compare(call, h200, nullptr);
  const DescribedPlan plan{"attest", plan_named("attest", call.c, h200)};
  call.kernel = "theirs";
  const Comparison theirs = compare(call, h200, &plan);
  const Problem& p = call.c.problem;
  const double q_tiles = std::ceil(static_cast<double>(p.seqlen_q) / plan.plan.tile_m),
               of_v = static_cast<double>(p.batch * p.nheads * p.seqlen_k) * 192 * 2 / 128;
  for (const char* name : {"smem_wavefronts", "smem_wavefronts_ideal"})
    EXPECT_EQ(*figure(theirs, name).predicted - *figure(ours, name).predicted, q_tiles * of_v) << name;
}

TEST(Comparison, MemoryLiesElsewhereThroughNcuAlone) {
  MeasuredCall call;
  call.kernel = "sm80-spill";
  call.c.problem = {1, 64, 64, 1024, 1024, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
  for (const char* gpu : {"h200", "h100"}) {
    const DeviceSpec as_it_is = load_device(gpu);
    const auto written = [&](std::optional<Profiler> via) {
      TileWalkOptions options;
      options.through_ncu = via == Profiler::ncu;
      options.dirty_bytes_at_start = call.dirty_bytes_before(via);
      return simulate(call.c, plan_named(call.kernel, call.c, as_it_is), as_it_is, call.kernel, options)
          .dram_write_bytes;
    };
    EXPECT_NE(written(Profiler::ncu), written(Profiler::cupti));
    for (const std::optional<Profiler> via : {std::optional(Profiler::ncu), std::optional(Profiler::cupti), {}}) {
      Provenance how;
      how.via = via;
      EXPECT_EQ(figure(compare(call, as_it_is, nullptr, how), "dram_write_bytes").predicted, written(via))
          << gpu << to_text(how);
    }
  }
}

TEST(Comparison, TheUnfusedPathHasItsOwnModel) {
  MeasuredCall call = counted("a", 8, 1);
  call.kernel = "unfused";
  const Comparison c = compare(call, load_device("h200"), nullptr);
  EXPECT_EQ(figure(c, "kernels").predicted, 3);
  EXPECT_TRUE(figure(c, "dram_read_bytes").predicted);
  EXPECT_FALSE(figure(c, "smem_wavefronts").predicted);
}

// fp32's products store their sums as they are, and take a time that is not known.
TEST(Comparison, UnfusedCallsOfFp32HaveNoLocalMemoryAndNoTime) {
  MeasuredCall call = counted("unfused", 8, 1);
  call.kernel = "unfused";
  const auto of = [&](Dtype dtype) {
    call.c.problem.dtype = dtype;
    return compare(call, load_device("h100"), nullptr);
  };
  EXPECT_GT(*figure(of(Dtype::bf16), "spill_store_bytes").predicted, 0);
  EXPECT_TRUE(figure(of(Dtype::bf16), "cycles").predicted);
  EXPECT_EQ(figure(of(Dtype::fp32), "spill_store_bytes").predicted, 0);
  EXPECT_FALSE(figure(of(Dtype::fp32), "cycles").predicted);
}

TEST(Comparison, ErrorsAreMeansAndMostsOverAMechanismsCalls) {
  const DeviceSpec h200 = load_device("h200");
  std::vector<Comparison> all;
  for (const auto& [mechanism, factor] : {std::pair{"a", 1.1}, std::pair{"b", 0.7}, std::pair{"a", 1.0}})
    all.push_back(compare(counted(mechanism, 8, factor), h200, nullptr));
  EXPECT_THAT(mechanisms_of(all), testing::ElementsAre("a", "b"));
  const MeanAndMost a = errors_of(all, "dram_read_bytes", "a"), every = errors_of(all, "dram_read_bytes");
  EXPECT_EQ(a.calls, 2);
  EXPECT_NEAR(a.mean, 0.05, 1e-12);
  EXPECT_NEAR(a.most, 0.1, 1e-12);
  EXPECT_EQ(a.worst, &all[0]);
  EXPECT_EQ(every.calls, 3);
  EXPECT_NEAR(every.most, 0.3, 1e-12);
  EXPECT_EQ(every.worst, &all[1]);
  EXPECT_EQ(errors_of(all, "sm_read_bytes").calls, 0);
  EXPECT_THAT(to_table(all), HasSubstr("5.0/10.0"));
}

// What a call has written stays in L2 in part: of what little went to DRAM nobody wants to know a tenth.
TEST(Comparison, ErrorsOfDramWritesAreOfTheOutputAtLeast) {
  MeasuredCall call = counted("a", 8, 1);
  const auto error = [&](double written) {
    call.launches[0].counters["dram__bytes_write.sum"] = written;
    Comparison compared = compare(call, load_device("h200"), nullptr);
    for (ComparedFigure& f : compared.figures)
      if (f.name == "dram_write_bytes") return f.predicted = 0, f.error();
    throw std::logic_error("no such figure");
  };
  const double output = 8 * 512 * (2 * 64 + 4);
  EXPECT_DOUBLE_EQ(*error(0), 0);
  EXPECT_DOUBLE_EQ(*error(output / 100), 0.01);
  EXPECT_DOUBLE_EQ(*error(3 * output), 1);
  EXPECT_FALSE(figure(compare(call, load_device("h200"), nullptr), "sm_write_bytes").error()) << "not measured";
}

TEST(Comparison, SeveralCountsAreComparedByTheirMean) {
  const DeviceSpec h200 = load_device("h200");
  std::vector<MeasuredCall> counts(3, counted("a", 8, 1));
  double& read = counts[0].launches[0].counters["dram__bytes_read.sum"];
  const double predicted = read;
  counts[1].launches[0].counters["dram__bytes_read.sum"] *= 0.8;
  read *= 1.2;
  counts[1].launches[0].counters["dram__bytes_write.sum"] = 1;  // which the others lack
  const Comparison c = compare(counts, h200, nullptr);
  EXPECT_EQ(c.counts, 3u);
  EXPECT_NEAR(*figure(c, "dram_read_bytes").measured, predicted, 1);
  EXPECT_NEAR(*figure(c, "dram_read_bytes").deviation, 0.2, 1e-6);
  EXPECT_NEAR(*figure(c, "cycles").deviation, 0, 1e-12);
  EXPECT_FALSE(figure(c, "dram_write_bytes").measured);
  EXPECT_FALSE(figure(c, "dram_write_bytes").deviation);
  EXPECT_THAT(to_table(c), HasSubstr("counted 3 times"));
  EXPECT_THAT(to_table(c), testing::ContainsRegex("dram_read_bytes .* 20.00% +1.000  dram__bytes_read.sum"));
  EXPECT_EQ(to_json(c)["counts"], 3);
  EXPECT_NEAR(to_json(c)["figures"][0]["deviation"].get<double>(), 0.2, 1e-6);

  const Comparison once = compare(counts[0], h200, nullptr);
  EXPECT_EQ(once.counts, 1u);
  EXPECT_FALSE(figure(once, "dram_read_bytes").deviation);
  EXPECT_THAT(to_table(once), Not(HasSubstr("counted")));
  EXPECT_TRUE(to_json(once)["figures"][0]["deviation"].is_null());
  const std::vector<Comparison> both = {once, c};
  const MeanAndMost d = deviations_of(both, "dram_read_bytes");
  EXPECT_EQ(d.calls, 1);
  EXPECT_EQ(d.worst, &both[1]);
  EXPECT_THAT(to_table(both), testing::ContainsRegex(
                                  "standard deviation of up to 3 counts of a call in %, mean/most\na .* 20.00/20.00"));
  EXPECT_THAT(to_table({once}), Not(HasSubstr("deviation")));
}

// Of bytes that may stay in L2 counts deviate by parts of what errors are parts of, and of a call's longest launch each
// count has its own.
TEST(Comparison, CountsDeviateByPartsOfWhatErrorsAre) {
  const DeviceSpec h200 = load_device("h200");
  std::vector<MeasuredCall> counts(2, counted("a", 8, 1));
  const double output = 8 * 512 * (2 * 64 + 4);
  counts[0].launches[0].counters["dram__bytes_write.sum"] = 0;
  counts[1].launches[0].counters["dram__bytes_write.sum"] = output / 50;
  EXPECT_NEAR(*figure(compare(counts, h200, nullptr), "dram_write_bytes").deviation, std::sqrt(0.5) / 50, 1e-9);
  for (MeasuredCall& count : counts) {
    count.kernel = "./theirs.so";
    count.launches.push_back(count.launches[0]);
    count.launches[0].counters["launch__registers_per_thread"] = 10;
    count.launches[1].counters["launch__registers_per_thread"] = 50;
  }
  counts[0].launches[0].counters["sm__cycles_elapsed.max"] += 1;
  counts[1].launches[1].counters["sm__cycles_elapsed.max"] += 3;
  const ComparedFigure registers = figure(compare(counts, h200, nullptr), "registers_per_thread");
  EXPECT_EQ(registers.measured, 30);
  EXPECT_NEAR(*registers.deviation, std::sqrt(800) / 30, 1e-9);
}

TEST(Comparison, TwoMeasurementsAgreeOrDoNot) {
  MeasuredCall one = counted("a", 8, 1), two = one, other = counted("a", 16, 1);
  two.launches[0].counters["dram__bytes_read.sum"] *= 0.9;
  const std::string table = agreement_table({one}, {other, two});
  EXPECT_THAT(table, HasSubstr("of 1 calls"));
  EXPECT_THAT(table, testing::ContainsRegex("dram__bytes_read.sum +10.00 +10.00"));
  EXPECT_THAT(table, testing::ContainsRegex("sm__cycles_elapsed.max +0.00 +0.00"));
  const nlohmann::ordered_json figures = agreement_json({one}, {other, two});
  EXPECT_EQ(figures["calls"], 1);
  EXPECT_EQ(figures["differences"].size(), one.launches[0].counters.size());
  for (const auto& f : figures["differences"]) {
    EXPECT_NEAR(f["mean"].get<double>(), f["counter"] == "dram__bytes_read.sum" ? 0.1 : 0, 1e-12) << f;
    EXPECT_EQ(f["most"], f["mean"]);
    EXPECT_EQ(f["calls"], 1);
  }
  MeasuredCall again = two;
  again.launches[0].counters["dram__bytes_read.sum"] *= 1 / 0.9 / 0.9;  // so that their mean is nearer
  EXPECT_THAT(agreement_table({one}, {two, again}),
              testing::ContainsRegex("of 1 calls(.*\n)*dram__bytes_read.sum +0.55 "));
  one.launches[0].counters["nothing"] = two.launches[0].counters["nothing"] = 0;
  EXPECT_THAT(agreement_table({one}, {two}), testing::ContainsRegex("nothing +0.00 +0.00"));
  MeasuredCall elsewhere = two;
  elsewhere.mechanism = "b";
  EXPECT_THAT(agreement_table({one, elsewhere}, {elsewhere, one}),
              testing::ContainsRegex("dram__bytes_read.sum +0.00 +0.00"));
  other = two;
  other.kernel = "sm80-spill";
  EXPECT_FALSE(have_a_call_in_common({one}, {other}));
  EXPECT_TRUE(have_a_call_in_common({one}, {other, two}));
  two.launches.push_back(two.launches[0]);
  EXPECT_THAT(agreement_table({one}, {other, two}), HasSubstr("of 0 calls"));
  EXPECT_FALSE(have_a_call_in_common({one}, {other, two}));
  two.launches = {{"f", {{"gpu__time_duration.sum.of.another", 1}}}};
  EXPECT_FALSE(have_a_call_in_common({one}, {two}));
  MeasuredCall yet_to_be_counted = one;
  yet_to_be_counted.launches.clear();
  EXPECT_TRUE(have_a_call_in_common({yet_to_be_counted}, {two}));
}

TEST(Comparison, ACallWithoutKeysHasNumbers) {
  MeasuredCall call;
  call.kernel = "sm80";
  call.c.problem = {1, 4, 4, 1, 0, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
  const Comparison none = compare(call, load_device("h200"), nullptr);
  ASSERT_EQ(none.unpredicted, "");
  for (const ComparedFigure& figure : none.figures)
    EXPECT_TRUE(std::isfinite(figure.predicted.value_or(0))) << figure.name;
}

}  // namespace
}  // namespace attest
