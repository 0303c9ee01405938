#include "attest/cpu/mutants.h"

#include <limits>

#include "attest/cpu/backward_mutants.h"
#include "mutant_parts.h"

namespace attest {
namespace {

// The number that an id begins with; bugs of no list come last.
int number_of(const Mutant& mutant) {
  const auto digits = mutant.id.find_first_not_of("0123456789");
  return digits == 0 ? std::numeric_limits<int>::max() : std::stoi(mutant.id.substr(0, digits));
}

}  // namespace

const std::vector<Mutant>& forward_mutants() {
  static const std::vector<Mutant> all = [] {
    std::vector<Mutant> mutants;
    for (const auto& theme : {mask_mutants(), row_mutants(), pipeline_mutants(), memory_mutants(), length_mutants(),
                              modifier_mutants(), split_mutants(), precision_mutants()})
      mutants.insert(mutants.end(), theme.begin(), theme.end());
    std::stable_sort(mutants.begin(), mutants.end(),
                     [](const Mutant& a, const Mutant& b) { return number_of(a) < number_of(b); });
    return mutants;
  }();
  return all;
}

const std::vector<Mutant>& all_mutants() {
  static const std::vector<Mutant> all = [] {
    std::vector<Mutant> mutants = forward_mutants();
    mutants.insert(mutants.end(), backward_mutants().begin(), backward_mutants().end());
    return mutants;
  }();
  return all;
}

}  // namespace attest
