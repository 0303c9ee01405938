// What was predicted of a call beside what was counted.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attest/simulator/measured_call.h"
#include "attest/simulator/plan_file.h"
#include "attest/simulator/report.h"

namespace attest {

/// A figure under the name that `predict --json` has for it, where it has one. Bytes, counts, cycles, microseconds and
/// percent are of the whole call; registers and occupancy of its longest launch.
struct ComparedFigure {
  std::string_view name, unit;
  std::string_view counter;  // that it is measured by
  std::string_view model;    // what predicts it; empty: nothing does
  std::optional<double> predicted, measured;
  /// What was measured of a call that was counted several times is the mean; this is the counts' sample standard
  /// deviation, a part of what errors are parts of. None of one count, and where there is no error.
  std::optional<double> deviation;
  /// Errors are parts of what was measured, but of no less than this: of DRAM writes O and LSE, of which some stays in
  /// L2 when a call ends.
  double least_denominator = 0;
  /// Predicted over measured; none where either is missing or the measured one is 0.
  std::optional<double> ratio() const;
  /// How far it is off, 0 where it is as predicted; none where either is missing, or there is nothing to be a part of.
  std::optional<double> error() const;
  double denominator() const;  // of it; 0: nothing was measured, or nothing happened
};

/// A call, what was counted of it and what a plan leads one to expect.
struct Comparison {
  MeasuredCall call;  // with the means of its counts
  std::size_t counts = 1;
  std::string plan_name;  // empty: nothing was predicted, for `unpredicted`'s reason
  std::string unpredicted;
  std::vector<ComparedFigure> figures;  // always the same ones, in the same order
  std::string bound;                    // the report's; empty for the unfused path
};

/// `counts`: of one call, at least one. `plan`: what the kernel is predicted by. None for "sm80", which the named plan
/// `attest` describes, for its ablations, whose plans have their names, for "unfused", whose three kernels have a model
/// of their own, and for kernels without a plan, of which nothing is predicted. The device's clock is the one that the
/// call ran at, where its cycles and its time were counted. Of `how` it takes the profiler and the caches, which are
/// cold where it does not say.
Comparison compare(std::span<const MeasuredCall> counts, const DeviceSpec& rated, const DescribedPlan* plan,
                   const Provenance& how = {});
inline Comparison compare(const MeasuredCall& call, const DeviceSpec& rated, const DescribedPlan* plan,
                          const Provenance& how = {}) {
  return compare(std::span(&call, 1), rated, plan, how);
}

/// Of a figure, over some calls.
struct MeanAndMost {
  int calls = 0;
  double mean = 0, most = 0;
  const Comparison* worst = nullptr;  // of those given
};
/// How far it is off, over the calls that have both, and `mechanism` where it is not empty.
MeanAndMost errors_of(const std::vector<Comparison>& comparisons, std::string_view figure,
                      std::string_view mechanism = "");
/// How far counts deviate from their mean, over such calls that were counted more than once.
MeanAndMost deviations_of(const std::vector<Comparison>& comparisons, std::string_view figure,
                          std::string_view mechanism = "");

/// The mechanisms, in the order of their first call.
std::vector<std::string> mechanisms_of(const std::vector<Comparison>& comparisons);

/// For a terminal: a line a figure, and how it was counted.
std::string to_table(const Comparison& comparison);
/// For a terminal: a line a call, ratios; then mean and most of each mechanism, and of counts' deviations if there are.
std::string to_table(const std::vector<Comparison>& comparisons);
bool have_a_call_in_common(const std::vector<MeasuredCall>& calls, const std::vector<MeasuredCall>& others);
/// How far two measurements of the same calls are apart, or the means of their counts, a line a counter; of calls of
/// one launch, since what a second one finds in the caches is not the same for every profiler.
std::string agreement_table(const std::vector<MeasuredCall>& calls, const std::vector<MeasuredCall>& others);
/// The same as fractions: {"calls": n, "differences": [{"counter", "calls", "mean", "most"}, ...]}.
nlohmann::ordered_json agreement_json(const std::vector<MeasuredCall>& calls, const std::vector<MeasuredCall>& others);
nlohmann::ordered_json to_json(const Comparison& comparison);

/// A page: predicted against measured on a diagonal for each figure, the errors of each mechanism, and every call, the
/// worst first, with the model that each of its figures hangs on; of one call how far off each figure is, and a table.
/// `heading` says where and when.
std::string html_measure(const std::vector<Comparison>& comparisons, std::string_view heading);

}  // namespace attest
