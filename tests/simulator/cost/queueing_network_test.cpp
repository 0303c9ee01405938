#include "queueing_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "step_demands.h"

namespace attest {
namespace {

/// The round of customers who wait at random, then are served one after the other in a fixed time.
double followed(int customers, double wait, double service) {
  std::mt19937 random(1);
  std::exponential_distribution<double> waits(1 / wait);
  std::priority_queue<double, std::vector<double>, std::greater<>> arrivals;
  for (int i = 0; i < customers; ++i) arrivals.push(waits(random));
  constexpr int rounds = 200'000;
  double free = 0;
  for (int i = 0; i < rounds; ++i) {
    free = std::max(free, arrivals.top()) + service;
    arrivals.pop();
    arrivals.push(free + waits(random));
  }
  return free * customers / rounds;
}

TEST(QueueingNetwork, FixedTimesAreWaitedForLessThanRandomOnes) {
  for (const int customers : {1, 2, 4, 8})
    for (const double wait : {300.0, 1000.0, 3000.0}) {
      const double found = followed(customers, wait, 300);
      const double fixed = cycle_of_network({{{300, true}}, {}, wait}, {customers});
      const double random = cycle_of_network({{{300}}, {}, wait}, {customers});
      EXPECT_NEAR(fixed / found, 1, 0.052) << customers << " " << wait;
      EXPECT_LE(std::abs(fixed - found), std::abs(random - found) + 0.006 * found) << customers << " " << wait;
      EXPECT_GE(fixed, customers * 300.0);
    }
  // of random times: n customers at k stations of one demand
  for (const int n : {1, 2, 5, 9}) EXPECT_NEAR(cycle_of_network({{{100}, {100}}, {{100}}}, {n}), 100 * (n + 2), 1e-9);
}

/// Mean value analysis, customer by customer: throughput of each scheduler's warps, how many wait for or are in what
/// they share, and how busy that is, of a network with these warps a scheduler. `fixed`: takes a fixed time each.
struct Place {
  double demand;
  bool fixed;
  struct Load {
    double warps = 0, busy = 0;
  };
  double stay(const Load& met) const { return demand * (1 + met.warps - (fixed ? met.busy / 2 : 0)); }
};
struct Network {
  std::vector<double> throughputs;
  std::vector<std::array<Place::Load, 2>> own;  // at issue with products, exp
  std::array<Place::Load, 2> shared;            // smem, L2
};
Network analysed(const StepDemand& d, const std::vector<int>& warps) {
  const Place own[] = {{std::max(d.issue + d.tensor, d.alu), false}, {d.exp * 7 / 8, true}};
  const Place shared[] = {{d.smem, true}, {d.l2_waited, false}};
  Network n{std::vector<double>(warps.size()), std::vector<std::array<Place::Load, 2>>(warps.size()), {}};
  for (std::size_t c = 0; c < warps.size(); ++c) {
    if (warps[c] == 0) continue;
    std::vector<int> less = warps;
    --less[c];
    const Network met = analysed(d, less);  // what an arriving warp meets
    double cycle = d.waits;
    for (int i = 0; i < 2; ++i) cycle += own[i].stay(met.own[c][i]) + shared[i].stay(met.shared[i]);
    n.throughputs[c] = warps[c] / cycle;
    const auto add = [&](Place::Load& load, const Place& s, const Place::Load& met_there) {
      load.warps += n.throughputs[c] * s.stay(met_there), load.busy += n.throughputs[c] * s.demand;
    };
    for (int i = 0; i < 2; ++i) add(n.own[c][i], own[i], met.own[c][i]), add(n.shared[i], shared[i], met.shared[i]);
  }
  return n;
}

TEST(QueueingNetwork, OfAKeyTileIsMeanValueAnalysis) {
  const DeviceSpec device = load_device("h100");
  StepDemand demand{400, 250, 300, 170};
  struct Beside {
    double waits = 0, l2 = 0, alu = 0;  // what queues for the ALU queues no more to issue
  };
  for (const Beside& b : {Beside{}, {500}, {500, 230}, {500, 230, 600}, {500, 0, 900}}) {
    demand.waits = b.waits, demand.l2_waited = b.l2, demand.alu = b.alu;
    for (const int ctas : {1, 2}) {
      const Network n = analysed(demand, std::vector<int>(4, ctas));
      EXPECT_NEAR(cycles_per_key_tile(demand, warps(4), device, ctas), ctas / n.throughputs[0], 1e-6);
    }
    for (const int ctas : {1, 2, 3, 5}) {  // of one warp: the schedulers with most
      std::vector<int> each(4);
      for (int i = 0; i < ctas; ++i) ++each[static_cast<std::size_t>(i % 4)];
      const Network n = analysed(demand, each);
      EXPECT_NEAR(cycles_per_key_tile(demand, warps(1), device, ctas), each[0] / n.throughputs[0], 1e-6) << ctas;
    }
  }
}

}  // namespace
}  // namespace attest
