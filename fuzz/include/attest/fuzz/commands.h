// The commands fuzz, check and mutants as calls: options in, exit status, text and JSON out. Nothing is written but
// progress, to stderr.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "attest/fuzz/campaign.h"
#include "attest/fuzz/check.h"
#include "attest/fuzz/mutants.h"
#include "attest/problem/exit_code.h"

namespace attest {

struct CommandResult {
  CommandResult();
  CommandResult(CommandResult&&) noexcept;
  CommandResult& operator=(CommandResult&&) noexcept;
  CommandResult(const CommandResult&) = delete;
  CommandResult& operator=(const CommandResult&) = delete;
  ~CommandResult();

  /// 0 pass, 1 the kernel is wrong, 4 it crashed or hung, 77 it takes none of this, 130 interrupted; 4 before 1 before
  /// 130.
  ExitCode exit_code = exit_pass;
  std::string text;                              // for a person
  std::string junit;                             // of fuzz: to_junit()
  std::unique_ptr<nlohmann::ordered_json> json;  // one object with its schema
  std::string svg;                               // check: the mask beside the truth, where it was asked for
};

/// Each throws InvalidInput for options a user can correct and KernelCrashed where the kernel cannot even be made.
/// SIGINT and SIGTERM end them with what they have. The kernel runs in workers of `program`; check without one runs it
/// here, for a debugger.
CommandResult fuzz_command(const CampaignOptions& options, const WorkerProgram& program);
CommandResult check_command(const CheckOptions& options, const std::optional<WorkerProgram>& program);
CommandResult mutants_command(const MutantOptions& options);

}  // namespace attest
