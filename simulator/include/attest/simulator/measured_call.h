// Calls as a profiler's counters saw them, and the files that keep them.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attest/problem/case.h"
#include "attest/simulator/provenance.h"

namespace attest {

/// A kernel's launch, with counters by the profiler's names.
struct MeasuredLaunch {
  std::string function;
  std::map<std::string, double> counters;
};

/// A forward call: the launches that it makes, in order.
struct MeasuredCall {
  std::string mechanism;  // what a panel's call is there for; empty outside a panel
  std::string kernel;     // the word behind --kernel
  Case c;
  std::vector<MeasuredLaunch> launches;
  std::size_t line = 0;  // where it begins in the file that it was read from; 0: there is none

  /// What L2 has dirty when its first launch begins and is not the call's, as who counts leaves it; none: nobody does.
  std::int64_t dirty_bytes_before(std::optional<Profiler> via) const;
  /// A counter over all launches; none where one of them lacks it.
  std::optional<double> sum(std::string_view counter) const;
  /// A counter of the launch that took the most cycles; none where it lacks it.
  std::optional<double> of_longest(std::string_view counter) const;
};

/// The plan that describes one of our own fused kernels; empty: none does.
std::string_view plan_of_kernel(std::string_view kernel);

/// A panel's counters, with each count of a call that was counted several times. As CSV: what is known of `how`, then
/// `comments`, a line each after "# "; the names mechanism,kernel,case,launch,function and the counters; a row a
/// launch, numbered from 0 within its call. `case` is the case's JSON.
struct MeasuredFile {
  Provenance how;
  std::vector<std::string> comments;  // those that are no field of `how`
  std::vector<MeasuredCall> calls;
};
std::string to_csv(const MeasuredFile& measured);
/// Reads what to_csv() wrote. Throws InvalidInput naming `file` and the line, of a call too that lacks launches which
/// its kernel makes.
MeasuredFile measured_from_csv(std::string_view text, std::string_view file);

/// Counts of the same call together, calls in the order of their first count: those of one mechanism, kernel and case
/// that launch the same functions.
std::vector<std::vector<MeasuredCall>> counts_by_call(const std::vector<MeasuredCall>& counts);
/// Counts of one call, of which there is at least one, as a call: its counters are means, of those that all counts
/// have.
MeasuredCall mean_of(std::span<const MeasuredCall> counts);

/// The rows of the CSV that `ncu --csv --page raw --print-units base` leaves in its log, in order of launch: those
/// of ncu_counters() that are numbers. The row of units and lines that are no CSV are skipped. Throws InvalidInput
/// naming `ncu` where there is no table.
std::vector<MeasuredLaunch> launches_from_ncu(std::string_view log);

/// A counter's name where CUPTI and ncu have different ones for the same: ncu's, which files and comparisons use.
std::string_view ncu_name(std::string_view cupti_name);

/// What is read of every launch, by CUPTI's names and by ncu's.
std::vector<std::string> cupti_counters();
std::vector<std::string> ncu_counters();

/// The calls that `attest measure --panel` makes: each mechanism of the models is moved by several.
std::vector<MeasuredCall> measurement_panel();

}  // namespace attest
