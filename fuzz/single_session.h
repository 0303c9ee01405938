// A worker for single questions, each of which may have all threads.
#pragma once
#include <string>

#include "attest/fuzz/check.h"
#include "worker_session.h"

namespace attest {

WorkerSession single_session(const WorkerProgram& program, const std::string& kernel, double load_seconds = 300);

/// As run_check() with a program, in a session that may have been asked before and may be asked again.
CheckResult run_check(WorkerSession& session, const CheckOptions& options);

}  // namespace attest
