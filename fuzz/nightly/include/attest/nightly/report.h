// A night as a person, a CI system and a program read it; all made of the history alone.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "attest/fuzz/tally.h"
#include "attest/nightly/history.h"

namespace attest {

/// A figure and what it was on nights of before, oldest first.
struct FigureHistory {
  Series series;
  std::vector<Figures> before;
};

/// How far a kernel came in the night's campaign.
struct KernelCoverage {
  std::string kernel;
  Tally statuses;
  std::uint64_t cases() const { return statuses.total(); }
  std::uint64_t first_uncovered_k = 0;  // every case of the shard below it was run
};

struct PastNight {
  std::string started;
  ExitCode exit_code = exit_pass;
  std::size_t red = 0;
  bool finished = true;
};

enum class NightVerdict : std::uint8_t { red, interrupted, nothing_checked, green };
/// "RED", "INTERRUPTED", "NOTHING CHECKED" or "green".
std::string_view to_string(NightVerdict verdict);

struct NightReport {
  Night night;
  std::vector<std::pair<Check, RedSince>> red;  // worst first
  std::vector<FigureHistory> figures;
  std::vector<KernelCoverage> coverage;
  std::vector<PastNight> past;  // with this one, oldest first, at most 30

  /// The night's; 130 where nothing is red and it did not finish.
  ExitCode exit_code() const;
  /// Where nothing is red, whether it did not finish comes before whether a kernel was checked.
  NightVerdict verdict() const;
};

/// Of the newest night. Throws as History::load, and InvalidInput naming `history` where it has none.
NightReport make_report(const History& history);

/// "attest/nightly/1".
nlohmann::ordered_json to_json(const NightReport& report);
std::string to_text(const NightReport& report);
/// A testsuite a step, a testcase a check.
std::string to_junit(const NightReport& report);
/// One page that loads nothing: what is red, since when, and the line that repeats it, before everything else.
std::string to_html(const NightReport& report);

}  // namespace attest
