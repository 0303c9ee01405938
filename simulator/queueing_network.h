// How long a customer takes to come round in a closed network of resources.
#pragma once
#include <vector>

namespace attest {

/// What each customer needs in a round.
struct NetworkDemand {
  std::vector<double> own;     // of the resources that only its class visits
  std::vector<double> shared;  // of those that all visit
  double wait = 0;             // of none
};

/// The round of a customer of the first class, where class c has customers[c] customers, the first one at least one,
/// that are all alike. Resources share themselves among those present or serve one after the other in random times:
/// the network then has a product form, whose normalizing constants (Buzen 1973; Baskett, Chandy, Muntz and Palacios
/// 1975) give the round exactly. 0 where nothing is needed.
double cycle_of_network(const NetworkDemand& demand, const std::vector<int>& customers);

}  // namespace attest
