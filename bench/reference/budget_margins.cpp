// How much room the error budget leaves right kernels, and how the statistical rules' numbers spread: the figures of
// docs/numerics.md. The kernels are those of tests/reference/emulated_kernel.h, all makes mixed.
//
//   budget_margins worst SECONDS SEED    the largest error over its bound, for every distribution and dtype
//   budget_margins spread SECONDS SEED   R, G and z of normal inputs, for every number of keys and head dimension
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "attest/reference/compare.h"
#include "random_kernel.h"

namespace {

using namespace attest;

double largest_over(const Tensor& got, const Tensor& truth, const Tensor& bound) {
  double largest = 0;
  for (std::size_t n = 0; n < truth.values.size(); ++n) {
    const double error = std::abs(got.values[n] - truth.values[n]);
    if (error > 0 && std::isfinite(error)) largest = std::max(largest, error / bound.values[n]);
  }
  return largest;
}

struct Margin {
  long rows = 0, accused = 0;
  double o = 0, lse = 0;
};

void worst(std::mt19937_64& random, std::map<std::string, Margin>& margins) {
  for (const Distribution distribution : all_distributions)
    for (const Dtype dtype : all_dtypes) {
      Case c;
      Problem& p = c.problem;
      p.seqlen_q = 1 + static_cast<std::int64_t>(random() % pick(random, {16, 200}));
      p.seqlen_k = pick(random, {1, 2, 3, 7, 16, 17, 40, 64, 65, 128, 200, 513, 1025});
      p.headdim = pick(random, {1, 2, 8, 16, 40, 64, 128, 256});
      p.headdim_v = pick(random, {1, 2, 8, 16, 40, 64, 128, 256});
      p.dtype = dtype;
      p.causal = pick(random, {Causal::none, Causal::bottom_right, Causal::top_left});
      if (random() % 3 == 0) p.window_left = static_cast<std::int64_t>(random() % 70);
      if (random() % 3 == 0) p.window_right = static_cast<std::int64_t>(random() % 70);
      if (random() % 6 == 0) p.softmax_scale = pick(random, {-0.3, 0.01, 1.0, 2.5, 0.0});
      c.inputs = distribution;
      c.seed = random();
      const EmulatedKernel kernel = any_kernel(random, dtype);
      const Inputs inputs = make_inputs(c);
      const Outputs outputs = kernel.run(p, inputs);
      const Truth truth = forward_with_budget(p, inputs, kernel.numerics(), distribution == Distribution::normal);
      const Verdict verdict = compare(p, truth, outputs);
      if (verdict.status != Status::passed)
        std::printf("ACCUSED: %s: %s\n", command_line(c).c_str(), verdict.detail.c_str());
      Margin& margin = margins[std::string(to_string(distribution)) + " " + std::string(to_string(dtype))];
      margin.rows += p.seqlen_q;
      margin.accused += verdict.status != Status::passed;
      margin.o = std::max(margin.o, largest_over(outputs.o, truth.forward.o, truth.o_bound));
      margin.lse = std::max(margin.lse, largest_over(*outputs.lse, truth.forward.lse, truth.lse_bound));
    }
}

struct Spread {
  long rows = 0, blocks = 0;
  double sum = 0, squares = 0, largest_R = 0, largest_G = 0, largest_z = 0;
};

void spread(std::mt19937_64& random, std::map<std::pair<long, long>, Spread>& spreads) {
  for (const std::int64_t headdim : {16, 64, 256})
    for (const std::int64_t keys : {2, 4, 16, 64, 256, 1024}) {
      Case c;
      Problem& p = c.problem;
      p.seqlen_k = keys;
      p.headdim = p.headdim_v = headdim;
      p.dtype = pick(random, {Dtype::fp16, Dtype::bf16});
      c.seed = random();
      const EmulatedKernel kernel = any_kernel(random, p.dtype);
      const Inputs inputs = make_inputs(c);
      const Outputs outputs = kernel.run(p, inputs);
      const Truth truth = forward_with_budget(p, inputs, kernel.numerics(), true);
      Spread& s = spreads[{headdim, keys}];
      double block = 0, rows = 0;
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
        if (!(truth.lse_variance.at(0, 0, i, 0) > 0)) continue;
        double sum = 0;
        for (std::int64_t d = 0; d < headdim; ++d) {
          const double error = outputs.o.at(0, i, 0, d) - truth.forward.o.at(0, i, 0, d);
          sum += error * error / truth.o_variance.at(0, i, 0, d);
        }
        const double mean = sum / static_cast<double>(headdim);
        const double error = outputs.lse->at(0, 0, i, 0) - truth.forward.lse.at(0, 0, i, 0);
        s.sum += mean;
        s.squares += mean * mean;
        s.largest_R = std::max(s.largest_R, std::sqrt(mean));
        s.largest_z = std::max(s.largest_z, std::abs(error) / std::sqrt(truth.lse_variance.at(0, 0, i, 0)));
        s.rows += 1;
        block += mean;
        rows += 1;
      }
      s.blocks += 1;
      if (rows > 32) s.largest_G = std::max(s.largest_G, block / rows);
    }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || (std::string(argv[1]) != "worst" && std::string(argv[1]) != "spread")) {
    std::fprintf(stderr, "usage: budget_margins worst|spread SECONDS SEED\n");
    return 2;
  }
  const bool is_worst = std::string(argv[1]) == "worst";
  std::mt19937_64 random(std::strtoull(argv[3], nullptr, 10));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[2]));
  std::map<std::string, Margin> margins;
  std::map<std::pair<long, long>, Spread> spreads;
  do {
    if (is_worst)
      worst(random, margins);
    else
      spread(random, spreads);
  } while (std::chrono::steady_clock::now() < end);

  for (const auto& [name, m] : margins)
    std::printf("%-15s %7ld rows: O %.3f of its bound, LSE %.3f, accused %ld\n", name.c_str(), m.rows, m.o, m.lse,
                m.accused);
  for (const auto& [shape, s] : spreads) {
    const auto n = static_cast<double>(s.rows);
    const double mean = s.sum / n, deviation = std::sqrt(s.squares / n - mean * mean);
    std::printf("headdim %3ld keys %4ld: %6ld rows, R^2 mean %.2f deviation %.2f, largest R %.2f, G %.3f, z %.2f\n",
                shape.first, shape.second, s.rows, mean, deviation, s.largest_R, s.largest_G, s.largest_z);
  }
  return 0;
}
