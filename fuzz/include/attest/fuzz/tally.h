// How often each status was given.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "attest/reference/compare.h"

namespace attest {

inline constexpr Status all_statuses[] = {Status::passed,    Status::wrong_values,  Status::wrong_shape,
                                          Status::unwritten, Status::out_of_bounds, Status::hazard,
                                          Status::crashed,   Status::hung,          Status::unsupported};

class Tally {
 public:
  void add(Status status) { ++counts_[static_cast<std::size_t>(status)]; }
  std::uint64_t operator[](Status status) const { return counts_[static_cast<std::size_t>(status)]; }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : counts_) sum += count;
    return sum;
  }
  /// Of those that are a finding: neither passed nor unsupported.
  std::uint64_t failed() const { return total() - (*this)[Status::passed] - (*this)[Status::unsupported]; }

  friend bool operator==(const Tally&, const Tally&) = default;

 private:
  std::array<std::uint64_t, std::size(all_statuses)> counts_{};
};

/// By the property's name.
using TallyByProperty = std::map<std::string, Tally>;

}  // namespace attest
