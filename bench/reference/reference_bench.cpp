// The reference's strip forward beside Eigen's own two products of the same shapes, S = Q K^T and O = P V in float64,
// compiled with the same flags. Goal: at least 0.6 of their rate, on one thread and on two.
//
//   reference_bench                       the ratios, then Google Benchmark's table
//   reference_bench --benchmark_filter=Small   what a case of the fuzzer costs the oracle
#include <benchmark/benchmark.h>
#include <omp.h>

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "attest/reference/compare.h"
#include "attest/reference/forward.h"
#include "attest/reference/inputs.h"
#include "attest/reference/rounding.h"

namespace {

using namespace attest;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Case square(std::int64_t seqlen, std::int64_t headdim, std::int64_t heads) {
  Case c;
  c.problem.nheads = c.problem.nheads_k = heads;
  c.problem.seqlen_q = c.problem.seqlen_k = seqlen;
  c.problem.headdim = c.problem.headdim_v = headdim;
  return c;
}

// What a head costs as two plain products. One head a thread, as good as two threads can do.
struct Products {
  Products(std::int64_t seqlen, std::int64_t headdim, int threads) {
    for (int t = 0; t < threads; ++t)
      heads.push_back({Matrix::Random(seqlen, headdim), Matrix::Random(seqlen, headdim),
                       Matrix::Random(seqlen, headdim), Matrix(seqlen, seqlen), Matrix(seqlen, headdim)});
  }
  void run() {
    const int threads = static_cast<int>(heads.size());
#pragma omp parallel for num_threads(threads)
    for (int t = 0; t < threads; ++t) {
      heads[t].s.noalias() = heads[t].q * heads[t].k.transpose();
      heads[t].o.noalias() = heads[t].s * heads[t].v;
    }
  }
  struct Head {
    Matrix q, k, v, s, o;
  };
  std::vector<Head> heads;
};

struct Seconds {
  double wall = 1e9, cpu = 1e9;  // cpu: of the whole process, over the threads in use
};

template <class Body>
void keep_best(Seconds& best, int threads, const Body& body) {
  const std::clock_t cpu = std::clock();
  const auto start = std::chrono::steady_clock::now();
  body();
  best.wall = std::min(best.wall, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  best.cpu = std::min(best.cpu, static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC / threads);
}

// Both sides in turn, the best of each: what else runs on the machine slows single runs of either. The ratio of CPU
// times is there for a machine that is never quiet; it does not see a thread that waits.
void print_ratio(std::int64_t seqlen, std::int64_t headdim, int threads) {
  const Case c = square(seqlen, headdim, threads);
  const Inputs inputs = make_inputs(c);
  Products products(seqlen, headdim, threads);
  omp_set_num_threads(threads);
  Seconds plain, strips;
  for (int round = 0; round < 9; ++round) {
    keep_best(plain, threads, [&] { products.run(); });
    keep_best(strips, threads, [&] { benchmark::DoNotOptimize(forward(c.problem, inputs)); });
  }
  const double gflops = 4e-9 * static_cast<double>(seqlen * seqlen * headdim) * threads;
  const double ratio = plain.wall / strips.wall;
  std::printf(
      "threads %d seqlen %4ld headdim %3ld: products %5.1f GFLOP/s, forward %5.1f, ratio %.2f, of CPU times %.2f (goal "
      "0.60)%s\n",
      threads, static_cast<long>(seqlen), static_cast<long>(headdim), gflops / plain.wall, gflops / strips.wall, ratio,
      plain.cpu / strips.cpu, ratio < 0.6 ? "  MISSED" : "");
}

void forward_only(benchmark::State& state) {
  const Case c = square(state.range(0), state.range(1), 1);
  const Inputs inputs = make_inputs(c);
  omp_set_num_threads(1);
  for (auto _ : state) benchmark::DoNotOptimize(forward(c.problem, inputs));
  state.counters["FLOP/s"] =
      benchmark::Counter(4.0 * static_cast<double>(state.range(0) * state.range(0) * state.range(1)),
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(forward_only)->Name("Forward")->Args({1024, 64})->Args({1024, 128})->Args({4096, 64})->Args({4096, 128});

void budget(benchmark::State& state) {
  const Case c = square(state.range(0), state.range(1), 1);
  const Inputs inputs = make_inputs(c);
  omp_set_num_threads(1);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        forward_with_budget(c.problem, inputs, flash_numerics(c.problem.dtype), state.range(2) != 0));
}
BENCHMARK(budget)
    ->Name("ForwardWithBudget")
    ->ArgNames({"seqlen", "headdim", "statistical"})
    ->Args({1024, 64, 0})
    ->Args({1024, 64, 1})
    ->Args({1024, 128, 0})
    ->Args({1024, 128, 1});

// Inputs, truth with both budgets, and the judgement: what the oracle costs the fuzzer for a case of this many
// multiply-adds (batch nheads seqlen_q seqlen_k (headdim + headdim_v)).
void small_case(benchmark::State& state) {
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(state.range(0)) / 128));
  Case c = square(std::max<std::int64_t>(side, 1), 64, 1);
  omp_set_num_threads(1);
  for (auto _ : state) {
    ++c.seed;
    const Inputs inputs = make_inputs(c);
    const Truth truth = forward_with_budget(c.problem, inputs, flash_numerics(c.problem.dtype), true);
    state.PauseTiming();
    Outputs outputs{truth.forward.o, truth.forward.lse};
    for (double& x : outputs.o.values) x = round_to(c.problem.dtype, x);
    state.ResumeTiming();
    benchmark::DoNotOptimize(compare(c.problem, truth, outputs));
  }
}
BENCHMARK(small_case)->Name("SmallCase")->RangeMultiplier(8)->Range(1 << 9, 1 << 21)->Unit(benchmark::kMicrosecond);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (argc == 1 && benchmark::GetBenchmarkFilter().empty())
    for (const int threads : {1, 2})
      for (const std::int64_t headdim : {64, 128})
        for (const std::int64_t seqlen : {1024, 2048, 4096}) print_ratio(seqlen, headdim, threads);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
