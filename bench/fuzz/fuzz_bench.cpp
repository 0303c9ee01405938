// How many cases a second one core gets through, and where the time goes. The goal is 300 small cases a second a core
// on the CPU kernel; the label says how far off a run is.
//
//   bin/fuzz_bench                      generation, the reference, the kernel, a whole campaign
//   bin/fuzz_bench --benchmark_filter=Campaign
//
// "of the reference" sets a campaign beside the float64 reference with its budget on the same cases in the same run:
// what fuzzing costs beyond knowing the truth.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>

#include <iostream>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/kernels.h"

namespace attest {
namespace {

constexpr std::uint64_t seed = 20;
constexpr double goal_cases_per_second = 300;

// Of this process and of its workers that have ended: what a core is kept busy for, whoever else uses the machine.
double cpu_seconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return seconds;
}

// Per-case seconds of the reference, from the benchmark before.
double reference_seconds = 0;

void set_rate(benchmark::State& state, std::uint64_t cases) {
  state.counters["cases_per_second"] = benchmark::Counter(static_cast<double>(cases), benchmark::Counter::kIsRate);
}

void Generate(benchmark::State& state) {
  std::uint64_t k = 0;
  for (auto _ : state) benchmark::DoNotOptimize(generate_case(seed, k++));
  set_rate(state, k);
}
BENCHMARK(Generate);

// The truth of each case as a campaign asks for it: inputs, forward, budgets.
void ReferenceAlone(benchmark::State& state) {
  omp_set_num_threads(1);
  const std::unique_ptr<Kernel> kernel = make_kernel("cpu");
  std::uint64_t k = 0;
  const double start = cpu_seconds();
  for (auto _ : state) {
    const Case c = generate_case(seed, k++);
    benchmark::DoNotOptimize(
        forward_with_budget(c.problem, make_inputs(c), kernel->numerics(c), c.inputs == Distribution::normal));
  }
  reference_seconds = (cpu_seconds() - start) / static_cast<double>(k);
  set_rate(state, k);
}
BENCHMARK(ReferenceAlone)->Iterations(4000)->Unit(benchmark::kMicrosecond);

// The kernel in poisoned memory, hazards checked.
void CpuKernelAlone(benchmark::State& state) {
  const std::unique_ptr<Kernel> kernel = make_kernel("cpu");
  ForwardBuffers buffers;
  std::uint64_t k = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const Case c = generate_case(seed, k++);
    const Inputs inputs = make_inputs(c);
    state.ResumeTiming();
    benchmark::DoNotOptimize(buffers.run(*kernel, c, inputs));
  }
  set_rate(state, k);
}
BENCHMARK(CpuKernelAlone)->Iterations(4000)->Unit(benchmark::kMicrosecond);

CampaignResult run(const CampaignOptions& options, bool in_worker) {
  if (!in_worker) return run_campaign([] { return make_kernel("cpu"); }, options);
  WorkerProgram program;
  program.path = ATTEST_PROGRAM;
  return run_campaign(program, options);
}

// In this process, or in a worker as `attest fuzz` does.
template <bool in_worker>
void Campaign(benchmark::State& state) {
  CampaignOptions options;
  options.seed = seed;
  options.cases = 4000;
  options.threads = 1;
  std::uint64_t cases = 0;
  double seconds = 0;
  Census census;
  for (auto _ : state) {
    const double start = cpu_seconds();
    const CampaignResult result = run(options, in_worker);
    if (result.failed > 0) state.SkipWithError("the CPU kernel failed");
    cases += result.cases;
    seconds += cpu_seconds() - start;
    census = result.census;
  }
  set_rate(state, cases);
  const double rate = static_cast<double>(cases) / seconds;
  std::string label = fmt::format("{:.2f} times the goal of {:.0f} a second a core", rate / goal_cases_per_second,
                                  goal_cases_per_second);
  if (reference_seconds > 0) {
    state.counters["of_the_reference"] = 1 / rate / reference_seconds;
    label += fmt::format(", {:.2f} times the reference alone", 1 / rate / reference_seconds);
  }
  state.SetLabel(label);
  if (!in_worker) std::cerr << census.to_string();
}
BENCHMARK(Campaign<false>)->Name("Campaign")->Iterations(1)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(Campaign<true>)->Name("CampaignInWorkers")->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace attest
