#include "attest/fuzz/timing_worker.h"

#include "attest/problem/error.h"
#include "single_session.h"

namespace attest {
namespace {

// A clock of the kernel's own takes a batch of calls for each repeat, and at first batches that double until one is
// long enough (gpu/python/attest.py). The first batch and the last that doubles come on top, and a call before all.
constexpr int more_batches = 3;

}  // namespace

TimingWorker::TimingWorker(const WorkerProgram& program, const std::string& kernel, double hang_seconds)
    : session_(std::make_unique<WorkerSession>(single_session(program, kernel))), hang_seconds_(hang_seconds) {
  if (!session_->start()) throw EnvironmentError("interrupted");
}

TimingWorker::~TimingWorker() = default;

bool TimingWorker::on_device() {
  const wire::Json answer = ask(*session_, {{"describe", true}}, {.kernel_seconds = hang_seconds_});
  return answer.at("capability").at("device") != "cpu";
}

TimedCalls TimingWorker::time(const Case& c, int repeats) {
  const double series_seconds =
      hang_seconds_ > 0 ? (repeats + more_batches) * (longest_batch_seconds + hang_seconds_) : 0;
  const wire::Json answer = ask(*session_, {{"time", wire::from_case(c)}, {"repeats", repeats}},
                                {.kernel_seconds = hang_seconds_, .own_seconds = 0, .series_seconds = series_seconds});
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
