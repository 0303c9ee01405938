// ncu's command line and what it leaves.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "attest/simulator/measured_call.h"

namespace attest::tools {

/// `ncu`, its flags, and `worker` with its arguments.
std::vector<std::string> ncu_command(const std::string& ncu, const std::string& log, bool warm,
                                     const std::vector<std::string>& worker);

/// Deals the launches of a log out to the calls: those after the n-th mark are call n's. Throws EnvironmentError where
/// their numbers do not match.
void deal_out(std::vector<MeasuredLaunch> launches, std::string_view mark, std::vector<MeasuredCall>& calls);

/// ncu has ended with `status` and `said` all this, its worker's words and its log. Throws, in one line, KernelCrashed
/// where a kernel failed in the worker or brought it down, else EnvironmentError with what to do: which permission is
/// missing, or the worker's or the log's last words.
[[noreturn]] void throw_ncu_failed(int status, std::string_view said);

/// The calls to make, for the worker and back.
nlohmann::ordered_json requests_to_json(const std::vector<MeasuredCall>& calls);
std::vector<MeasuredCall> requests_from_json_text(std::string_view text);

}  // namespace attest::tools
