#include "queueing_network.h"

#include <numeric>
#include <utility>

namespace attest {
namespace {

/// A power series up to x^n.
using Series = std::vector<double>;

/// times 1 / (1 - demand x): a resource
void add_resource(Series& series, double demand) {
  for (std::size_t n = 1; n < series.size(); ++n) series[n] += demand * series[n - 1];
}

/// times the sum of (demand x)^k / k!: a wait for none
void add_wait(Series& series, double demand) {
  Series sum(series.size());
  double power = 1;
  for (std::size_t k = 0; k < series.size(); ++k) {
    for (std::size_t n = k; n < series.size(); ++n) sum[n] += power * series[n - k];
    power *= demand / static_cast<double>(k + 1);
  }
  series = std::move(sum);
}

/// `own`: the series of a class's resources and wait; `shared`: that of the shared ones, which all classes need alike,
/// so that which of K customers are of which class is a factor of its own: K! over the k! of each class.
double normalizing_constant(const Series& own, const Series& shared, const std::vector<int>& customers) {
  Series all = {1};
  for (const int n : customers) {
    Series more(all.size() + static_cast<std::size_t>(n));
    double orders = 1;
    for (int k = 0; k <= n; ++k) {
      for (std::size_t i = 0; i < all.size(); ++i)
        more[i + static_cast<std::size_t>(k)] += all[i] / orders * own[static_cast<std::size_t>(n - k)];
      orders *= k + 1;
    }
    all = std::move(more);
  }
  double sum = 0, factorial = 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    sum += all[i] * factorial * shared[i];
    factorial *= static_cast<double>(i + 1);
  }
  return sum;
}

}  // namespace

double cycle_of_network(const NetworkDemand& demand, const std::vector<int>& customers) {
  double unit = demand.wait;  // so that powers stay small
  for (const double x : demand.own) unit += x;
  for (const double x : demand.shared) unit += x;
  if (unit == 0) return 0;
  Series own(static_cast<std::size_t>(customers[0]) + 1);
  own[0] = 1;
  for (const double x : demand.own) add_resource(own, x / unit);
  add_wait(own, demand.wait / unit);
  Series shared(1 + static_cast<std::size_t>(std::accumulate(customers.begin(), customers.end(), 0)));
  shared[0] = 1;
  for (const double x : demand.shared) add_resource(shared, x / unit);
  std::vector<int> one_less = customers;
  --one_less[0];
  return unit * customers[0] * normalizing_constant(own, shared, customers) /
         normalizing_constant(own, shared, one_less);
}

}  // namespace attest
