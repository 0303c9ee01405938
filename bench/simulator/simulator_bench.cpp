// How long a prediction takes, beside the same prediction without its shortcuts: every set of L2 walked and every CTA
// recorded and counted. Goals on one core: 16 heads x 4 x 4096 x 128 under 0.1 s, 2 heads x 65,536 under 0.5 s.
//
//   simulator_bench
//
// prints Google Benchmark's table. `exhaustive_over_prediction` is the ratio of the two times, `dram_read_error` the
// sampled walk's bytes over the exhaustive walk's, less 1.
#include <benchmark/benchmark.h>

#include <chrono>

#include "attest/plan/catalog.h"
#include "attest/plan/launch.h"
#include "attest/simulator/report.h"

namespace {

using namespace attest;

struct Panel {
  const char* name;
  std::int64_t batch, nheads, nheads_k, seqlen, headdim;
  bool causal;
  bool exhaustive;  // whether the long way round is bearable
};

constexpr Panel panel[] = {
    {"batch 4, 16 heads, 4096, d128", 4, 16, 16, 4096, 128, false, true},
    {"batch 4, 16 heads, 4096, d128, causal", 4, 16, 16, 4096, 128, true, true},
    {"16 heads, 16384, d128", 1, 16, 16, 16384, 128, false, true},
    {"Llama 3 70B, 8192", 1, 64, 8, 8192, 128, true, true},
    {"batch 16, 32 heads, 1024, d64, causal", 16, 32, 32, 1024, 64, true, true},
    {"2 heads, 65536, d128", 1, 2, 2, 65536, 128, false, false},
    {"batch 4096, 64 heads, 2048, d128, causal", 4096, 64, 8, 2048, 128, true, false},
};

Case case_of(const Panel& p) {
  Case c;
  c.problem = {p.batch,   p.nheads,  p.nheads_k,  p.seqlen, p.seqlen,
               p.headdim, p.headdim, Dtype::bf16, {},       p.causal ? Causal::bottom_right : Causal::none,
               -1,        -1};
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

void predict(benchmark::State& state, const Panel& p) {
  const Case c = case_of(p);
  const DeviceSpec device = load_device("h200");
  const KernelPlan plan = plan_named("fa2", c, device);
  SimulationReport report;
  double seconds = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    report = simulate(c, plan, device, "fa2");
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    benchmark::DoNotOptimize(report);
  }
  if (!p.exhaustive) return;
  const auto [exhaustive_seconds, bytes] = exhaustive(c, plan, device, report);
  state.counters["exhaustive_over_prediction"] =
      exhaustive_seconds / (seconds / static_cast<double>(state.iterations()));
  state.counters["dram_read_error"] = report.dram_read_bytes / bytes - 1;
}

const bool registered = [] {
  for (const Panel& p : panel)
    benchmark::RegisterBenchmark(p.name, [&p](benchmark::State& state) { predict(state, p); })
        ->Unit(benchmark::kMillisecond)
        ->MinTime(0.3);
  return true;
}();

}  // namespace
