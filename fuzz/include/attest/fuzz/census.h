// What a campaign's cases were like: how many had each feature, and how much work they were.
#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "attest/problem/case.h"

namespace attest {

/// Something a case has or has not.
struct Feature {
  std::string name;
  bool (*has)(const Case&);
};
std::span<const Feature> features();

/// Counts cases. Merging is commutative: threads count apart.
class Census {
 public:
  Census();
  void add(const Case& c);
  void merge(const Census& other);

  std::int64_t cases() const { return cases_; }
  std::int64_t count(std::string_view feature) const;  // throws std::out_of_range for a name not in features()

  /// Shares in percent, and the histogram of the work's octaves, for a person.
  std::string to_string() const;
  /// {"cases": n, "features": {name: count}, "work_log2": {octave: count}}; work 0 counts under "none".
  nlohmann::ordered_json to_json() const;

 private:
  std::int64_t cases_ = 0;
  std::vector<std::int64_t> counts_;        // as features()
  std::array<std::int64_t, 65> octaves_{};  // std::bit_width of the work
};

}  // namespace attest
