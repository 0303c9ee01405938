// Counters of calls on the GPU at hand. Everything here throws EnvironmentError, with what to do about it, in a build
// without CUDA and where there is no GPU.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attest/simulator/device.h"
#include "attest/simulator/measured_call.h"
#include "attest/simulator/provenance.h"

namespace attest::tools {

/// The GPU at hand, its driver and this build's CUDA; what else there is to say is not known yet.
Provenance measuring_gpu();

/// The sides of its GPCs, as a DeviceSpec has them: a chip's own. None where nobody knows how to find them, at another
/// compute capability than 9.0, and where they are none that a chip of `device` can have, which is told on stderr.
std::vector<double> gpc_sides_here(const DeviceSpec& device);

/// What to do where there is no GPU to measure on.
inline constexpr const char* without_gpu = "ask `attest predict` alone";

/// Throws where there is no GPU that kernels of this build run on; `otherwise`: what to do without.
void expect_gpu(std::string_view otherwise);

/// Why a call cannot be made there, by the field's name; none if it can. Throws InvalidInput for a kernel that runs on
/// no GPU.
std::optional<std::string> unmeasurable(const MeasuredCall& call);

/// Fills in each call's launches, read in this process through CUPTI; tells stderr how far it is if `progress`. `warm`:
/// L2 as the same call has left it, else empty before the call. Throws KernelCrashed where a kernel fails.
void measure_with_cupti(std::vector<MeasuredCall>& calls, bool warm, bool progress);

/// The same through Nsight Compute's `ncu` (in PATH, or what ATTEST_NCU names) around a worker process of ours. It
/// empties the caches before each launch, not before each call, and has counters that CUPTI lacks. Throws KernelCrashed
/// where a kernel fails or brings the worker down.
void measure_with_ncu(std::vector<MeasuredCall>& calls, bool warm, bool progress);

/// The worker that ncu runs: makes the calls of a file once each, a mark of its own before each. The exit status.
int make_marked_calls(const std::string& file);
inline constexpr const char* measure_worker_argument = "__measure";
inline constexpr const char* measure_worker_says = "attest: ";  // before why it ends, on a line of stderr

}  // namespace attest::tools
