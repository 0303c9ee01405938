#include "attest/nightly/night.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "attest/problem/error.h"

namespace attest {
namespace {

constexpr std::string_view words[] = {"passed", "skipped", "regressed", "wrong", "crashed"};

}  // namespace

std::string_view to_string(CheckState state) { return words[static_cast<std::size_t>(state)]; }

CheckState check_state_named(std::string_view field, std::string_view word) {
  const auto* const found = std::find(std::begin(words), std::end(words), word);
  if (found == std::end(words)) throw InvalidInput(field, fmt::format("'{}'", word), "is no state of a check");
  return static_cast<CheckState>(found - std::begin(words));
}

ExitCode exit_code_of(CheckState worst) {
  switch (worst) {
    case CheckState::crashed:
      return exit_kernel_crashed;
    case CheckState::wrong:
      return exit_kernel_wrong;
    case CheckState::regressed:
      return exit_regression;
    default:
      return exit_pass;
  }
}

bool Night::checked_a_kernel() const {
  return std::any_of(checks.begin(), checks.end(),
                     [](const Check& check) { return check.state != CheckState::skipped && check.of_a_kernel; });
}

ExitCode Night::exit_code() const {
  CheckState worst = CheckState::passed;
  for (const Check& check : checks) worst = std::max(worst, check.state);
  const ExitCode code = exit_code_of(worst);
  return code == exit_pass && !checked_a_kernel() ? exit_unsupported : code;
}

}  // namespace attest
