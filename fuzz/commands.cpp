#include "attest/fuzz/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/fuzz/junit.h"
#include "attest/fuzz/kernels.h"
#include "watched_kernel.h"

namespace attest {
namespace {

bool is_crash(const Verdict& verdict) { return verdict.status == Status::crashed || verdict.status == Status::hung; }

CommandResult make_result(ExitCode exit_code, std::string text, nlohmann::ordered_json json) {
  CommandResult result;
  result.exit_code = exit_code;
  result.text = std::move(text);
  *result.json = std::move(json);
  return result;
}

bool has_crash(const Tally& tally) { return tally[Status::crashed] + tally[Status::hung] > 0; }

ExitCode exit_code_of(const CampaignResult& result) {
  if (has_crash(result.statuses) || has_crash(result.corpus.statuses)) return exit_kernel_crashed;
  if (result.failed + result.corpus.failed > 0) return exit_kernel_wrong;
  if (result.stopped == Stopped::interrupted) return exit_interrupted;
  return result.judged() > 0 ? exit_pass : exit_unsupported;
}

ExitCode exit_code_of(const CheckOptions& options, const CheckResult& result) {
  if (result.unsupported) return exit_unsupported;
  ExitCode code = exit_pass;
  for (const auto& [property, verdict] : result.verdicts)
    if (verdict.status != Status::passed)
      code = code == exit_kernel_crashed || is_crash(verdict) ? exit_kernel_crashed : exit_kernel_wrong;
  if (code == exit_pass && result.mask && !result.mask->same) code = exit_kernel_wrong;
  if (code == exit_pass && result.interrupted) return exit_interrupted;
  const bool nothing = result.verdicts.empty() && !result.mask && !options.dry_run;
  return code == exit_pass && nothing ? exit_unsupported : code;
}

}  // namespace

CommandResult::CommandResult() : json(std::make_unique<nlohmann::ordered_json>()) {}
CommandResult::CommandResult(CommandResult&&) noexcept = default;
CommandResult& CommandResult::operator=(CommandResult&&) noexcept = default;
CommandResult::~CommandResult() = default;

CommandResult fuzz_command(const CampaignOptions& options, const WorkerProgram& program) {
  const StopOnSignals stop;
  const CampaignResult result = run_campaign(program, options);
  CommandResult command = make_result(exit_code_of(result), to_text(options, result), to_json(options, result));
  command.junit = to_junit(options, result);
  return command;
}

CommandResult check_command(const CheckOptions& options, const std::optional<WorkerProgram>& program) {
  options.validate();
  const CheckResult result = [&] {
    if (!program) {
      WatchedKernel kernel(make_kernel(options.kernel));
      return run_check(kernel, options);
    }
    const StopOnSignals stop;
    return run_check(*program, options);
  }();
  CommandResult answer = make_result(exit_code_of(options, result), to_text(options, result), to_json(options, result));
  if (result.mask) answer.svg = result.mask->svg;
  return answer;
}

CommandResult mutants_command(const MutantOptions& options) {
  const StopOnSignals stop;
  const MutantResults results = run_mutants(all_mutants(), options);
  const bool survived =
      std::any_of(results.mutants.begin(), results.mutants.end(), [](const MutantResult& r) { return !r.caught; });
  const ExitCode code = survived ? exit_kernel_wrong : results.interrupted ? exit_interrupted : exit_pass;
  return make_result(code, to_text(results), to_json(options, results));
}

}  // namespace attest
