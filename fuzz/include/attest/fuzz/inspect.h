// What a kernel declares, what it says of its plan, and whether it holds on a few cases: asked in a worker, so that a
// kernel that crashes at load, or whenever, is told and not suffered.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attest/fuzz/worker.h"
#include "attest/gpu/kernel.h"
#include "attest/problem/exit_code.h"

namespace attest {

/// Of `kernel`, a word of --kernel. Throws KernelCrashed, and what making the kernel throws.
Capability inspect_capability(const WorkerProgram& program, const std::string& kernel);

/// The plan's JSON that the kernel tells for a case. Throws InvalidInput naming `kernel` if it refuses the case or
/// tells none, KernelCrashed if asking it brings the worker down, and as above.
std::string inspect_plan(const WorkerProgram& program, const std::string& kernel, const Case& c);

struct InspectionStep {
  std::string name;
  enum class Result : std::uint8_t { right, wrong, crashed, refused } result = Result::right;
  std::string detail;
};

struct Inspection {
  std::string kernel;
  std::optional<Capability> capability;  // none where it cannot be had
  std::vector<InspectionStep> steps;
  /// 4 before 1 before 77 (it refuses every case) before 0; where the kernel cannot be made what that says: 2, 3 or 4.
  ExitCode exit_code = exit_pass;
};

/// Loads the kernel, reads its record, and puts it to a score of small cases, one for each thing that a kernel may
/// take, under every property. No call of it may take longer than `hang_seconds`.
Inspection inspect_kernel(const WorkerProgram& program, const std::string& kernel, double hang_seconds = 60);

nlohmann::ordered_json to_json(const Capability& capability);
nlohmann::ordered_json to_json(const Inspection& inspection);
/// A line a step.
std::string to_text(const Inspection& inspection);

}  // namespace attest
