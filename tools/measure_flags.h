// What `attest measure` reads off its flags, and how its results begin, for one call and for the panel.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attest/simulator/device.h"
#include "attest/simulator/measured_call.h"
#include "attest/simulator/provenance.h"
#include "flags.h"

namespace attest::tools {

Profiler read_via(const Flags& flags);
std::int64_t read_repeats(const Flags& flags);

/// Of what is counted now.
Provenance provenance(const Flags& flags);

/// The GPU that --device names; none if it was not given.
std::optional<DeviceSpec> named_device(const Flags& flags);

/// --device, or the one of the name that CUDA has for the GPU, which may have no more than its name in common with it;
/// then with its GPCs on the sides that `how` knows.
DeviceSpec device_of(const Flags& flags, const Provenance& how);

/// Counts all calls, and then all of them again, until each has `repeats` counts.
std::vector<MeasuredCall> measure(const std::vector<MeasuredCall>& calls, std::int64_t repeats, const Provenance& how,
                                  bool progress);

nlohmann::ordered_json provenance_json(const Provenance& how);
/// How calls were counted and by what they were predicted: what a result begins with.
nlohmann::ordered_json provenance_json(const Provenance& how, const DeviceSpec& device);

/// A line of text, in which a file may say what it likes; the JSON has that whole.
std::string provenance_text(const Provenance& how);
std::string heading(const Provenance& how, const DeviceSpec& device);

}  // namespace attest::tools
