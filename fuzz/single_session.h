// A worker for single questions, each of which may have all threads.
#pragma once
#include <string>

#include "attest/fuzz/check.h"
#include "worker_session.h"

namespace attest {

WorkerSession single_session(const WorkerProgram& program, const std::string& kernel);

/// The answer to `question`, for which the kernel's functions have these limits. Throws KernelCrashed
/// where it crashes, hangs or throws instead, and what WorkerSession throws.
wire::Json ask(WorkerSession& session, const wire::Json& question, const WorkerSession::Limits& limits);

/// As run_check() with a program, in a session that may have been asked before and may be asked again.
CheckResult run_check(WorkerSession& session, const CheckOptions& options);

}  // namespace attest
