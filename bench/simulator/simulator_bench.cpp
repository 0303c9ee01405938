// How long a prediction takes, beside the same prediction without its shortcuts: every set of L2 walked and every CTA
// recorded and counted. Goals on one core: 16 heads x 4 x 4096 x 128 under 0.1 s, 2 heads x 65,536 under 0.5 s; a tune
// of 500 plans under 20 s; memory under 1 GiB.
//
//   simulator_bench
//
// prints Google Benchmark's table. `goal_over_prediction` is the goal over the prediction's CPU time,
// `exhaustive_over_prediction` is the ratio of the two times, `dram_read_error` the sampled walk's bytes over the
// exhaustive walk's, less 1. The rows of `tune` say how many plans fit, how much longer walking each of them in full
// takes, where the best of them stood in the rough rank, and how much slower than it the plan is that tune chose.
// `peak_mib` is the process's, up to there.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/simulator/report.h"
#include "attest/simulator/tune.h"

namespace {

using namespace attest;

struct Panel {
  const char* name;
  std::int64_t batch, nheads, nheads_k, seqlen, headdim;
  bool causal;
  bool exhaustive;  // whether the long way round is bearable
  const char* plan = "fa2";
  double goal_seconds = 0;            // 0: none
  std::int64_t distinct_lengths = 0;  // of a packed batch: 1 to this many keys, each once
};

constexpr Panel panel[] = {
    {"batch 4, 16 heads, 4096, d128", 4, 16, 16, 4096, 128, false, true, "fa2", 0.1},
    {"batch 4, 16 heads, 4096, d128, causal", 4, 16, 16, 4096, 128, true, true, "fa2", 0.1},
    {"16 heads, 16384, d128", 1, 16, 16, 16384, 128, false, true},
    {"Llama 3 70B, 8192", 1, 64, 8, 8192, 128, true, true},
    {"batch 16, 32 heads, 1024, d64, causal", 16, 32, 32, 1024, 64, true, true},
    {"2 heads, 65536, d128", 1, 2, 2, 65536, 128, false, false, "fa2", 0.5},
    {"batch 4096, 64 heads, 2048, d128, causal", 4096, 64, 8, 2048, 128, true, false},
    {"8 heads, 1048576, d128", 1, 8, 8, 1 << 20, 128, false, false},
    {"batch 1048576, 16 heads, 64, d64", 1 << 20, 16, 16, 64, 64, false, false},
    {"1 head, 64,000,000, d64", 1, 1, 1, 64'000'000, 64, false, false},
    {"60,000 lengths, d64", 60'000, 1, 1, 60'000, 64, false, false, "fa2", 0, 60'000},
    {"batch 4, 16 heads, 4096, d128, causal, fa3", 4, 16, 16, 4096, 128, true, true, "fa3", 0.1},
};

Case case_of(const Panel& p) {
  Case c;
  c.problem = {p.batch,   p.nheads,  p.nheads_k,  p.seqlen, p.seqlen,
               p.headdim, p.headdim, Dtype::bf16, {},       p.causal ? Causal::bottom_right : Causal::none,
               -1,        -1};
  for (std::int64_t i = 0; i < p.distinct_lengths; ++i) c.problem.varlen_q.push_back(i * 7919 % p.distinct_lengths + 1);
  c.problem.varlen_k = c.problem.varlen_q;
  return c;
}

/// Seconds of a walk of every set and of a count of every CTA, and the DRAM bytes that the walk reads.
std::pair<double, double> exhaustive(const Case& c, const KernelPlan& plan, const DeviceSpec& device,
                                     const SimulationReport& r) {
  const auto start = std::chrono::steady_clock::now();
  TileWalkOptions options = r.walk_options;
  options.sampling = 1;
  const double bytes = walk_tiles(c, plan, device, r.ctas_per_sm, options).dram_read_bytes;
  Counts total;
  for (std::int64_t head = 0; head < c.problem.batch * c.problem.nheads; ++head) {
    Counter counter(plan, {});
    for (int t = 0; t < num_q_tiles(plan, c.problem); ++t) total += counter.count(make_work(c.problem, t));
  }
  benchmark::DoNotOptimize(total);
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), bytes};
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void predict(benchmark::State& state, const Panel& p) {
  const Case c = case_of(p);
  const DeviceSpec device = load_device("h200");
  const KernelPlan plan = plan_named(p.plan, c, device);
  SimulationReport report;
  double seconds = 0;
  const std::clock_t cpu_start = std::clock();
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    report = simulate(c, plan, device, p.plan);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    benchmark::DoNotOptimize(report);
  }
  const double cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  if (p.goal_seconds != 0)
    state.counters["goal_over_prediction"] = p.goal_seconds * static_cast<double>(state.iterations()) / cpu_seconds;
  state.counters["peak_mib"] = peak_mib();
  if (!p.exhaustive) return;
  const auto [exhaustive_seconds, bytes] = exhaustive(c, plan, device, report);
  state.counters["exhaustive_over_prediction"] =
      exhaustive_seconds / (seconds / static_cast<double>(state.iterations()));
  state.counters["dram_read_error"] = report.dram_read_bytes / bytes - 1;
}

struct TunePanel {
  const char* name;
  const char* device;
  Panel panel;
  bool exhaustive;
};

constexpr TunePanel tune_panel[] = {
    {"tune a100, batch 4, 16 heads, 4096, d128", "a100", panel[0], true},
    {"tune h200, batch 4, 16 heads, 4096, d128", "h200", panel[0], false},
    {"tune a100, 32 heads, 2048, d64, causal", "a100", {"", 1, 32, 32, 2048, 64, true, true}, true},
    {"tune h200, 8 heads, 2048, d128", "h200", {"", 1, 8, 8, 2048, 128, false, true}, true},
};

/// All plans walked in full, beside what tune() makes of them.
void compare_with_exhaustive(benchmark::State& state, const TuneResult& tuned, double seconds) {
  std::vector<const TunedPlan*> by_rough_time;
  for (const TunedPlan& plan : tuned.ranked) by_rough_time.push_back(&plan);
  std::sort(by_rough_time.begin(), by_rough_time.end(),
            [](auto* a, auto* b) { return a->rough_time_us < b->rough_time_us; });
  const auto start = std::chrono::steady_clock::now();
  double best = std::numeric_limits<double>::infinity();
  std::size_t rank = 0;
  for (std::size_t i = 0; i < by_rough_time.size(); ++i) {
    const double time = simulate(tuned.c, by_rough_time[i]->plan.plan, tuned.device).time_us;
    if (time < best) best = time, rank = i + 1;
  }
  const double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  state.counters["exhaustive_over_tune"] = all / seconds;
  state.counters["rough_rank_of_the_best"] = static_cast<double>(rank);
  state.counters["chosen_over_best"] = tuned.winner().report.time_us / best;
}

void tune_case(benchmark::State& state, const TunePanel& p) {
  const Case c = case_of(p.panel);
  const DeviceSpec device = load_device(p.device);
  TuneResult tuned;
  double seconds = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    tuned = tune(c, device);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    benchmark::DoNotOptimize(tuned);
  }
  state.counters["plans"] = static_cast<double>(tuned.ranked.size() + tuned.skipped.size());
  state.counters["fit"] = static_cast<double>(tuned.ranked.size());
  if (p.exhaustive) compare_with_exhaustive(state, tuned, seconds / static_cast<double>(state.iterations()));
  state.counters["peak_mib"] = peak_mib();
}

const bool registered = [] {
  for (const Panel& p : panel)
    benchmark::RegisterBenchmark(p.name, [&p](benchmark::State& state) { predict(state, p); })
        ->Unit(benchmark::kMillisecond)
        ->MinTime(0.3);
  for (const TunePanel& p : tune_panel)
    benchmark::RegisterBenchmark(p.name, [&p](benchmark::State& state) { tune_case(state, p); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1);
  return true;
}();

}  // namespace
