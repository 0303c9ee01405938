// What a campaign never tried: which features, kinds of inputs and properties never met on one case.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attest/problem/case.h"

namespace attest {

struct Property;

/// Counts, for each pair of (feature, kind of inputs), (feature, property) and (kind of inputs, property), the judged
/// cases that had both. Features are those of features() that are no kind of inputs, kinds all_distributions and
/// properties properties(): what is added to those tables is counted too.
class Coverage {
 public:
  Coverage();
  /// A case and the properties that were judged on it; none of them if the kernel does not take it.
  void add(const Case& c, std::span<const Property* const> judged);

  /// A pair that was never tried. `met` counts the cases that offered it: with the one, and to which the other could
  /// have been put. 0: the campaign drew no such case, as where a property does not apply.
  struct Gap {
    std::string first, second;
    std::uint64_t met = 0;
  };
  std::vector<Gap> untried_feature_inputs() const;
  std::vector<Gap> untried_feature_property() const;
  std::vector<Gap> untried_inputs_property() const;
  std::size_t pairs() const;

  /// A few lines for a person: how many pairs were tried, then those that were not. What was tried with nothing at all
  /// is named alone.
  std::string to_string() const;
  /// {"pairs", "tried", "features", "inputs", "properties": [names], "untried": {"feature_inputs",
  /// "feature_property", "inputs_property": [[first, second], ...]}}.
  nlohmann::ordered_json to_json() const;

 private:
  // Rows by columns: how often both were on one judged case, and on a case that could have been.
  struct Table {
    std::vector<std::string> rows, columns;
    std::vector<std::uint64_t> tried, met;
    Table(std::vector<std::string> r, std::vector<std::string> c);
    void add(std::size_t row, std::size_t column, bool was_tried);
    std::vector<Gap> gaps() const;
    std::vector<std::size_t> empty_rows() const;
  };

  Table feature_inputs_, feature_property_, inputs_property_;
};

}  // namespace attest
