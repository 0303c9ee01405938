// A plan on the command line: --plan P|FILE.json, --set FIELD=VALUE.
#pragma once
#include "attest/problem/case.h"
#include "attest/simulator/device.h"
#include "attest/simulator/plan_file.h"
#include "flags.h"

namespace attest::tools {

void declare_plan_flags(Flags& flags);

/// The device of --device, h100 where it is not given. Throws InvalidInput.
DeviceSpec read_device(const Flags& flags);

/// Throws InvalidInput for what is neither a plan of `attest plans` nor a path.
void refuse_unknown_plan(const std::string& name);

/// What is wrong with --plan and --set on every device: a name that no plan or file has, a field that no plan has or
/// that is beyond its limits. Throws InvalidInput.
void check_plan_flags(const Flags& flags);

/// The plan that the flags give, `attest` if none, or the one `named` in its place, for a case on a device. Throws
/// InvalidInput.
DescribedPlan read_plan(const Flags& flags, const Case& c, const DeviceSpec& device, std::string_view named = "");

}  // namespace attest::tools
