#include "attest/fuzz/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/fuzz/in_flight.h"
#include "attest/fuzz/kernels.h"

namespace attest {
namespace {

constexpr int kernel_wrong = 1, kernel_crashed = 4, unsupported = 77, interrupted = 130;

bool is_crash(const Verdict& verdict) { return verdict.status == Status::crashed || verdict.status == Status::hung; }

CommandResult make_result(int exit_code, std::string text, nlohmann::ordered_json json) {
  CommandResult result;
  result.exit_code = exit_code;
  result.text = std::move(text);
  *result.json = std::move(json);
  return result;
}

int exit_code_of(const CampaignResult& result) {
  for (const Failure& failure : result.failures)
    if (is_crash(failure.verdict)) return kernel_crashed;
  if (result.failed > 0) return kernel_wrong;
  if (result.stopped == Stopped::interrupted) return interrupted;
  return result.cases > 0 && result.cases == result.unsupported ? unsupported : 0;
}

int exit_code_of(const CheckOptions& options, const CheckResult& result) {
  if (result.unsupported) return unsupported;
  int code = 0;
  for (const auto& [property, verdict] : result.verdicts)
    if (verdict.status != Status::passed)
      code = code == kernel_crashed || is_crash(verdict) ? kernel_crashed : kernel_wrong;
  if (result.mask) {
    if (code == 0 && !result.mask->comparison.same()) code = kernel_wrong;
    return code;
  }
  return code == 0 && result.verdicts.empty() && !options.dry_run ? unsupported : code;
}

}  // namespace

CommandResult::CommandResult() : json(std::make_unique<nlohmann::ordered_json>()) {}
CommandResult::CommandResult(CommandResult&&) noexcept = default;
CommandResult& CommandResult::operator=(CommandResult&&) noexcept = default;
CommandResult::~CommandResult() = default;

CommandResult fuzz_command(const CampaignOptions& options) {
  options.validate();
  make_kernel(options.kernel);  // a wrong word is told before anything starts
  install_crash_handlers();
  const StopOnSignals stop;
  const CampaignResult result = run_campaign([&] { return make_kernel(options.kernel); }, options);
  return make_result(exit_code_of(result), to_text(options, result), to_json(options, result));
}

CommandResult check_command(const CheckOptions& options) {
  options.validate();
  const std::unique_ptr<Kernel> kernel = make_kernel(options.kernel);
  install_crash_handlers();
  const CheckResult result = run_check(*kernel, options);
  CommandResult answer = make_result(exit_code_of(options, result), to_text(options, result), to_json(options, result));
  if (result.mask) answer.svg = result.mask->svg;
  return answer;
}

CommandResult mutants_command(const MutantOptions& options) {
  install_crash_handlers();
  const StopOnSignals stop;
  const MutantResults results = run_mutants(forward_mutants(), options);
  const bool survived =
      std::any_of(results.mutants.begin(), results.mutants.end(), [](const MutantResult& r) { return !r.caught; });
  const int code = survived ? kernel_wrong : results.interrupted ? interrupted : 0;
  return make_result(code, to_text(results), to_json(options, results));
}

}  // namespace attest
