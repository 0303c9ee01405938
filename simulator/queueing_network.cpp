#include "queueing_network.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

namespace attest {
namespace {

/// At a station: customers on average, and how much of the time it serves.
struct Load {
  double customers = 0, busy = 0;
};

struct OfClass {
  std::vector<Load> own;
  double cycle = 0;
};

/// A network with so many customers of each class.
struct Solution {
  std::map<int, OfClass> classes;  // by their customers: those with as many are alike
  std::vector<Load> shared;
};

class Network {
 public:
  explicit Network(const NetworkDemand& demand) : demand_(demand) {}

  /// `customers` descend.
  const Solution& solution(const std::vector<int>& customers) {
    const auto known = solutions_.find(customers);
    if (known != solutions_.end()) return known->second;
    Solution s;
    s.shared.resize(demand_.shared.size());
    for (std::size_t c = customers.size(); c-- > 0;) {  // of those alike the last, which may have one less
      const int n = customers[c];
      const auto [at, first] = s.classes.try_emplace(n, OfClass{std::vector<Load>(demand_.own.size())});
      if (!first || n == 0) continue;
      std::vector<int> less = customers;
      --less[c];
      const Solution& met = solution(less);
      std::vector<double> own = stays(demand_.own, met.classes.at(n - 1).own),
                          shared = stays(demand_.shared, met.shared);
      double cycle =
          std::accumulate(shared.begin(), shared.end(), std::accumulate(own.begin(), own.end(), demand_.wait));
      const int all = std::accumulate(customers.begin(), customers.end(), 0);
      keep_within(demand_.own, n, own, cycle);
      keep_within(demand_.shared, all, shared, cycle);
      at->second.cycle = cycle;
      add(at->second.own, demand_.own, own, n / cycle);
      const auto alike = static_cast<double>(std::count(customers.begin(), customers.end(), n));
      add(s.shared, demand_.shared, shared, alike * n / cycle);
    }
    return solutions_.emplace(customers, std::move(s)).first->second;
  }

 private:
  static std::vector<double> stays(const std::vector<Station>& stations, const std::vector<Load>& met) {
    std::vector<double> r;
    for (std::size_t i = 0; i < stations.size(); ++i)
      r.push_back(stations[i].demand * (1 + met[i].customers - (stations[i].fixed ? met[i].busy / 2 : 0)));
    return r;
  }
  /// A fixed station that would give these customers more than it has keeps them for longer.
  static void keep_within(const std::vector<Station>& stations, int customers, std::vector<double>& stays,
                          double& cycle) {
    for (std::size_t i = 0; i < stations.size(); ++i) {
      if (!stations[i].fixed) continue;
      const double longer = std::max(0.0, customers * stations[i].demand - cycle);
      stays[i] += longer;
      cycle += longer;
    }
  }
  static void add(std::vector<Load>& loads, const std::vector<Station>& stations, const std::vector<double>& stays,
                  double rate) {
    for (std::size_t i = 0; i < stations.size(); ++i) {
      loads[i].customers += rate * stays[i];
      loads[i].busy += rate * stations[i].demand;
    }
  }

  const NetworkDemand& demand_;
  std::map<std::vector<int>, Solution> solutions_;
};

}  // namespace

double cycle_of_network(const NetworkDemand& demand, const std::vector<int>& customers) {
  double needed = demand.wait;
  for (const auto* stations : {&demand.own, &demand.shared})
    for (const Station& s : *stations) needed += s.demand;
  if (needed == 0) return 0;
  std::vector<int> descending = customers;
  std::sort(descending.begin(), descending.end(), std::greater<>());
  return Network(demand).solution(descending).classes.at(customers[0]).cycle;
}

}  // namespace attest
