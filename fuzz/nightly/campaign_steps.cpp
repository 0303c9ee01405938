// The corpus and the campaign.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "attest/fuzz/campaign.h"
#include "attest/problem/error.h"
#include "steps.h"

namespace attest {
namespace {

bool crashes(Status status) { return status == Status::crashed || status == Status::hung; }

CampaignOptions options_for(const StepWork& work, const std::string& kernel, double seconds) {
  CampaignOptions options;
  options.kernel = kernel;
  options.seed = work.night.campaign.seed;
  options.shard_index = work.night.campaign.shard_index;
  options.shard_count = work.night.campaign.shard_count;
  options.threads = work.options.threads;
  options.hang_seconds = work.options.hang_seconds;
  options.time_seconds = seconds;
  options.max_shrink_seconds = std::min(options.max_shrink_seconds, seconds);
  options.corpus = fmt::format("{}/{}", work.options.out, night_corpus);
  return options;
}

// A campaign that was interrupted takes the request back; here it holds for the whole night.
CampaignResult run(const WorkerProgram& program, const CampaignOptions& options) {
  CampaignResult result = run_campaign(program, options);
  if (result.stopped == Stopped::interrupted) request_stop();
  return result;
}

// One check for each property that was judged.
std::vector<Check> checks_of(const std::string& prefix, const CampaignResult& result) {
  std::vector<Check> checks;
  for (const auto& [property, tally] : result.by_property) {
    Check check{fmt::format("{}/{}", prefix, property), CheckState::passed, "", ""};
    if (tally.failed() > 0) {
      check.state = CheckState::wrong;
      if (tally[Status::crashed] + tally[Status::hung] > 0) check.state = CheckState::crashed;
      check.detail = fmt::format("{} of {} judgements failed", tally.failed(), tally.total());
      for (const Failure& failure : result.failures) {
        if (failure.property != property || crashes(failure.verdict.status) != (check.state == CheckState::crashed))
          continue;
        const std::string where = failure.corpus_file.empty() ? fmt::format("case {}", failure.k) : failure.corpus_file;
        check.detail = fmt::format("{} in {}: {}; {}", to_string(failure.verdict.status), where,
                                   describe(failure.verdict), check.detail);
        check.repro = failure.repro;
        break;
      }
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

// What cannot even be begun: the kernel's fault, or the machine's.
std::optional<Part> tried(const std::string& name, const std::string& kernel, const std::function<Part()>& act) {
  try {
    return act();
  } catch (const KernelCrashed& error) {
    Part part;  // field by field: as one initialiser gcc 12 takes it for uninitialised in a Release build
    part.step = {name, 0, error.what()};
    part.checks.push_back({name, CheckState::crashed, error.what(), fmt::format("attest check --kernel {}", kernel)});
    return part;
  } catch (const EnvironmentError& error) {
    return skipped(name, error.what());
  }
}

void append(Part& to, Part from) {
  to.step.seconds += from.step.seconds;
  to.step.note += fmt::format("{}{}", to.step.note.empty() ? "" : "; ", from.step.note);
  to.checks.insert(to.checks.end(), from.checks.begin(), from.checks.end());
}

double seconds_of(const Night& night, const std::string& step) {
  double seconds = 0;
  for (const Step& recorded : night.steps)
    if (recorded.name == step) seconds += recorded.seconds;
  return seconds;
}

// A kernel that was wholly wrong, or could not be made, is not fuzzed any longer tonight.
bool is_through(const Night& night, const std::string& name) {
  return std::any_of(night.checks.begin(), night.checks.end(), [&](const Check& check) { return check.name == name; });
}

std::uint64_t next_case(const Night& night, const std::string& kernel, CampaignOptions options) {
  std::uint64_t next = 0;
  for (const Covered& covered : night.covered) {
    if (covered.kernel != kernel) continue;
    options.first_case = covered.first_case;
    next = std::max(next, options.case_number(covered.outcomes.size()));
  }
  return next;
}

}  // namespace

Part corpus_step(const StepWork& work, const WorkerProgram& program) {
  Part all;
  for (const std::string& kernel : work.night.kernels)
    append(all, *tried("corpus/" + kernel, kernel, [&] {
             CampaignOptions options =
                 options_for(work, kernel, work.seconds / static_cast<double>(work.night.kernels.size()));
             options.cases = options.first_case = 1;  // none of the campaign's
             const CampaignResult result = run(program, options);
             const auto& replays = result.corpus;
             Part part;
             part.checks = checks_of("corpus/" + kernel, result);
             part.step.note = fmt::format("{}: {} of {} failures of before, {} failed", kernel, replays.replayed,
                                          replays.files, replays.failed);
             return part;
           }));
  all.step.name = "corpus";
  return all;
}

double block_seconds(const StepWork& work, const std::string& kernel) {
  constexpr double shortest = 1, longest = 60, share = 1.0 / 20;
  const auto& covered = work.night.covered;
  const auto blocks =
      std::count_if(covered.begin(), covered.end(), [&](const Covered& c) { return c.kernel == kernel; });
  const double needed =
      seconds_of(work.night, "fuzz/" + kernel) / static_cast<double>(std::max<std::ptrdiff_t>(1, blocks));
  return std::min(work.seconds, std::clamp(std::max(share * work.options.seconds, needed), shortest, longest));
}

std::optional<Part> fuzz_block(const StepWork& work, const WorkerProgram& program) {
  const std::string* least = nullptr;
  for (const std::string& kernel : work.night.kernels) {
    const std::string name = "fuzz/" + kernel;
    if (is_through(work.night, name)) continue;
    if (!least || seconds_of(work.night, name) < seconds_of(work.night, "fuzz/" + *least)) least = &kernel;
  }
  if (!least) return std::nullopt;
  const std::string name = "fuzz/" + *least;
  return timed([&] {
    return *tried(name, *least, [&] {
      CampaignOptions options = options_for(work, *least, block_seconds(work, *least));
      options.replays = false;
      options.cases = std::numeric_limits<std::int64_t>::max();
      options.first_case = next_case(work.night, *least, options);
      const CampaignResult result = run(program, options);
      Part part;
      part.step.name = name;
      part.checks = checks_of(name, result);
      if (!result.outcomes.empty()) part.covered.push_back({*least, options.first_case, result.outcomes});
      if (result.stopped == Stopped::failures)
        part.checks.push_back(
            {name, CheckState::skipped, fmt::format("no further cases after {} failing ones", result.failed), ""});
      return part;
    });
  });
}

}  // namespace attest
