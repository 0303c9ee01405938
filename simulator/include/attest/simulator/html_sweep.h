// A prediction over a field as a page that a person understands: one file, no network, no other file.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attest/simulator/sweep.h"

namespace attest {

/// A step between neighbouring values of a sweep at which time changes by more than a tenth beside the others.
struct SweepStep {
  SweepValue from, to;
  double ratio = 1;                // time at `to` over time at `from`
  std::string plan_change;         // "from 4 to 8 warps"; empty if it stays
  std::vector<std::string> costs;  // what the dearer of the two has more of, what costs most first
};

/// The steps that stand out, the largest first, at most 8: both beside the growth of the whole sweep and beside the two
/// around it, as powers of the field, or as equal steps where the field is not positive. None of less than
/// four points, nor of values that are no numbers, nor at an end where the field grows by more than a tenth: that may
/// be a bend.
std::vector<SweepStep> standing_out(const std::vector<SweepPoint>& points);

/// The JSON object that the page draws. At least one of `points` has a report.
nlohmann::ordered_json sweep_page_data(const SweepAxis& axis, const std::vector<SweepPoint>& points);
std::string html_sweep(const SweepAxis& axis, const std::vector<SweepPoint>& points);

}  // namespace attest
