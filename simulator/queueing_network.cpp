#include "queueing_network.h"

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

/// `own`: the series of a class's resources and wait. What a class has at the shared one is a polynomial with k!
/// divided out; x^K of all classes' stands for K!.
double normalizing_constant(const Series& own, double shared, const std::vector<int>& customers) {
  Series all = {1};
  for (const int n : customers) {
    Series more(all.size() + static_cast<std::size_t>(n));
    double power = 1;
    for (int k = 0; k <= n; ++k) {
      for (std::size_t i = 0; i < all.size(); ++i)
        more[i + static_cast<std::size_t>(k)] += all[i] * power * own[static_cast<std::size_t>(n - k)];
      power *= shared / (k + 1);
    }
    all = std::move(more);
  }
  double sum = 0, factorial = 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    sum += all[i] * factorial;
    factorial *= static_cast<double>(i + 1);
  }
  return sum;
}

}  // namespace

double cycle_of_network(const NetworkDemand& demand, const std::vector<int>& customers) {
  double unit = demand.shared + demand.wait;  // so that powers stay small
  for (const double x : demand.own) unit += x;
  if (unit == 0) return 0;
  Series own(static_cast<std::size_t>(customers[0]) + 1);
  own[0] = 1;
  for (const double x : demand.own) add_resource(own, x / unit);
  add_wait(own, demand.wait / unit);
  std::vector<int> one_less = customers;
  --one_less[0];
  return unit * customers[0] * normalizing_constant(own, demand.shared / unit, customers) /
         normalizing_constant(own, demand.shared / unit, one_less);
}

}  // namespace attest
