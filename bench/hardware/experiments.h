// The experiments by name. Each launches its kernels in a fixed order and says what each launch was, one row a launch,
// so that a profiler's rows, in the same order, can be put beside them.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "attest/hardware/placement.h"

namespace attest::hardware {

/// What an experiment is given: a buffer, where SMs and pages are, and where its rows go.
struct Bench {
  std::uint8_t* buffer = nullptr;
  std::vector<SmPlace> sms;
  std::vector<std::uint8_t> homes;  ///< of the buffer's first pages
  std::ostream* rows = nullptr;

  template <typename First, typename... Rest>
  void row(const First& first, const Rest&... rest) const {
    *rows << first;
    ((*rows << ',' << rest), ...);
    *rows << '\n' << std::flush;
  }
};

struct Experiment {
  std::string name;
  std::string columns;  ///< of its rows
  std::function<void(const Bench&)> run;
  std::int64_t buffer_bytes = std::int64_t{768} << 20;  ///< that it needs
};

std::vector<Experiment> write_experiments();
std::vector<Experiment> read_experiments();
std::vector<Experiment> displace_experiments();
std::vector<Experiment> crossing_experiments();
std::vector<Experiment> head_experiments();
std::vector<Experiment> respill_experiments();
std::vector<Experiment> merge_experiments();
std::vector<Experiment> placement_experiments();

}  // namespace attest::hardware
