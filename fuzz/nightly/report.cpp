#include "attest/nightly/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "attest/fuzz/campaign.h"
#include "attest/nightly/rank_test.h"
#include "attest/nightly/regression.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

std::vector<KernelCoverage> coverage_of(const Night& night) {
  std::map<std::string, KernelCoverage> by_kernel;
  CampaignOptions options;
  options.shard_index = night.campaign.shard_index, options.shard_count = night.campaign.shard_count;
  for (const Covered& covered : night.covered) {
    KernelCoverage& coverage = by_kernel[covered.kernel];
    coverage.kernel = covered.kernel;
    for (const Status status : covered.outcomes) coverage.statuses.add(status);
    options.first_case = covered.first_case;
    coverage.first_uncovered_k = std::max(coverage.first_uncovered_k, options.case_number(covered.outcomes.size()));
  }
  std::vector<KernelCoverage> list;
  for (const std::string& kernel : night.kernels)
    if (const auto found = by_kernel.find(kernel); found != by_kernel.end()) list.push_back(found->second);
  return list;
}

}  // namespace

ExitCode NightReport::exit_code() const {
  const ExitCode code = night.exit_code();
  const bool none_red = code == exit_pass || code == exit_unsupported;
  return none_red && night.finished.empty() ? exit_interrupted : code;
}

std::string_view to_string(NightVerdict verdict) {
  constexpr std::string_view words[] = {"RED", "INTERRUPTED", "NOTHING CHECKED", "green"};
  return words[static_cast<std::size_t>(verdict)];
}

NightVerdict NightReport::verdict() const {
  if (!red.empty()) return NightVerdict::red;
  if (night.finished.empty()) return NightVerdict::interrupted;
  return night.checked_a_kernel() ? NightVerdict::green : NightVerdict::nothing_checked;
}

NightReport make_report(const History& history) {
  constexpr std::size_t most_nights = 30;
  const std::vector<std::int64_t> ids = history.ids();
  if (ids.empty()) throw InvalidInput("history", "no night", "is recorded; attest nightly records one");
  NightReport report;
  for (std::size_t i = ids.size() - std::min(ids.size(), most_nights); i < ids.size(); ++i) {
    report.night = history.load(ids[i]);
    const auto& checks = report.night.checks;
    const auto red = std::count_if(checks.begin(), checks.end(), [](const Check& c) { return is_red(c.state); });
    report.past.push_back({report.night.started, report.night.exit_code(), static_cast<std::size_t>(red),
                           !report.night.finished.empty()});
  }
  const Night& night = report.night;
  for (const Check& check : night.checks)
    if (is_red(check.state)) report.red.emplace_back(check, history.red_since(night.id, check.name));
  std::stable_sort(report.red.begin(), report.red.end(),
                   [](const auto& a, const auto& b) { return a.first.state > b.first.state; });
  for (const Series& series : night.series)
    report.figures.push_back({series, history.before(night.id, series, baseline_nights)});
  report.coverage = coverage_of(night);
  return report;
}

Json to_json(const NightReport& report) {
  const Night& night = report.night;
  Json json = {{"schema", "attest/nightly/1"},   {"started", night.started},        {"finished", night.finished},
               {"version", night.version},       {"host", night.machine.host},      {"device", night.machine.device},
               {"driver", night.machine.driver}, {"toolkit", night.machine.toolkit}};
  json["exit_code"] = static_cast<int>(report.exit_code());
  json["verdict"] = to_string(report.verdict());
  json["seed"] = night.campaign.seed;
  json["generator_version"] = night.campaign.generator_version;
  json["shard"] = fmt::format("{}/{}", night.campaign.shard_index, night.campaign.shard_count);
  json["kernels"] = night.kernels;
  json["red"] = Json::array();
  for (const auto& [check, since] : report.red)
    json["red"].push_back({{"check", check.name},
                           {"state", to_string(check.state)},
                           {"detail", check.detail},
                           {"repro", check.repro},
                           {"since", since.first},
                           {"nights", since.nights},
                           {"last_good", since.last_good}});
  json["steps"] = Json::array();
  for (const Step& step : night.steps)
    json["steps"].push_back({{"name", step.name}, {"seconds", step.seconds}, {"note", step.note}});
  json["fuzz"] = Json::array();
  for (const KernelCoverage& c : report.coverage)
    json["fuzz"].push_back({{"kernel", c.kernel},
                            {"cases", c.cases()},
                            {"passed", c.statuses[Status::passed]},
                            {"failed", c.statuses.failed()},
                            {"unsupported", c.statuses[Status::unsupported]},
                            {"first_uncovered_k", c.first_uncovered_k}});
  json["figures"] = Json::array();
  for (const auto& [series, before] : report.figures)
    json["figures"].push_back({{"name", series.name},
                               {"unit", series.unit},
                               {"median", median(series.values)},
                               {"values", series.values},
                               {"nights_before", before.size()}});
  json["checks"] = Json::array();
  for (const Check& check : night.checks)
    json["checks"].push_back({{"name", check.name}, {"state", to_string(check.state)}, {"detail", check.detail}});
  return json;
}

std::string to_text(const NightReport& report) {
  const Night& night = report.night;
  std::string text =
      fmt::format("{} on {}{}: {} checks, {} red{}\n", to_string(report.verdict()), night.machine.device,
                  night.machine.driver.empty() ? "" : ", driver " + night.machine.driver, night.checks.size(),
                  report.red.size(), night.finished.empty() ? "; interrupted, the same command goes on with it" : "");
  for (const auto& [check, since] : report.red) {
    text += fmt::format("\n  {} {}, since {} ({} night{}{})\n    {}\n", to_string(check.state), check.name, since.first,
                        since.nights, since.nights == 1 ? "" : "s",
                        since.last_good.empty() ? "" : ", last good " + since.last_good, check.detail);
    if (!check.repro.empty()) text += fmt::format("    {}\n", check.repro);
  }
  text += "\n";
  for (const Step& step : night.steps)
    text += fmt::format("  {:<16} {:>7.1f} s  {}\n", step.name, step.seconds, step.note);
  for (const KernelCoverage& c : report.coverage)
    text += fmt::format("  {}: {} cases, {} passed, {} failed, {} unsupported; covered to case {} of seed {}\n",
                        c.kernel, c.cases(), c.statuses[Status::passed], c.statuses.failed(),
                        c.statuses[Status::unsupported], c.first_uncovered_k, night.campaign.seed);
  return text;
}

}  // namespace attest
