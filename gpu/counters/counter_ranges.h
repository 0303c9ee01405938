// One reading of CUPTI's range profiler: a range a launch, a pass each time the work is done.
#pragma once
#include <cstdint>
#include <vector>

#include "attest/counters/counted_work.h"
#include "cupti.h"

namespace attest {

using ImageBytes = std::vector<std::uint8_t>;  // what CUPTI keeps its state in

/// The range profiler on the current context, as long as it lives. All throw EnvironmentError.
class CounterRanges {
 public:
  /// `config`: which metrics are read in which pass. It and `names` outlive this.
  CounterRanges(std::vector<const char*>& names, ImageBytes& config, std::size_t launches);
  ~CounterRanges();
  CounterRanges(const CounterRanges&) = delete;
  CounterRanges& operator=(const CounterRanges&) = delete;

  /// Does the work once. Whether this was the last pass.
  bool pass(CountedWork& work);
  /// After the last pass: an image of as many ranges as there are launches.
  ImageBytes& decoded();

 private:
  const Cupti& api_ = cupti();
  CUpti_RangeProfiler_Object* profiler_ = nullptr;
  std::size_t launches_;
  ImageBytes data_;
};

}  // namespace attest
