// The same kernel at other sequence lengths: how time and traffic grow.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "attest/simulator/report.h"

namespace attest {

struct LengthPoint {
  std::int64_t seqlen_q = 0, seqlen_k = 0;
  double time_us = 0, unfused_time_us = 0;  // launches included
  double dram_bytes = 0, unfused_dram_bytes = 0, compulsory_bytes = 0;
  std::string bound;
};

struct LengthCurve {
  std::vector<LengthPoint> points;  // ascending
  std::string why_none;             // if there are none
};

/// Lengths a power of two from the report's own, both if they are equal and the keys' alone if not; the plan and the
/// device stay. At most 7, and no more than `max_key_tiles` walked in all, so that a page takes a second or so: the
/// same points on every machine. A case whose lengths are given entry by entry has none.
LengthCurve length_curve(const SimulationReport& report, double max_key_tiles = 2e6);

}  // namespace attest
