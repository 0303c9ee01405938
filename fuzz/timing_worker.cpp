#include "attest/fuzz/timing_worker.h"

#include "attest/problem/error.h"
#include "single_session.h"

namespace attest {

TimingWorker::TimingWorker(const WorkerProgram& program, const std::string& kernel, double hang_seconds)
    : session_(std::make_unique<WorkerSession>(single_session(program, kernel))), hang_seconds_(hang_seconds) {
  if (!session_->start()) throw EnvironmentError("interrupted");
}

TimingWorker::~TimingWorker() = default;

TimedCalls TimingWorker::time(const Case& c, int repeats) {
  const wire::Json answer = ask(*session_, {{"time", wire::from_case(c)}, {"repeats", repeats}}, hang_seconds_);
  TimedCalls timed;
  if (answer.contains("unsupported")) {
    timed.refused = answer.at("unsupported").get<std::string>();
    return timed;
  }
  timed.times.seconds = answer.at("seconds").get<std::vector<double>>();
  timed.times.on_device = answer.at("on_device").get<bool>();
  return timed;
}

}  // namespace attest
