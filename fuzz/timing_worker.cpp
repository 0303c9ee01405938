#include "attest/fuzz/timing_worker.h"

#include "attest/problem/error.h"
#include "single_session.h"

namespace attest {
namespace {

// Batches double while all of them together are below longest_batch_seconds (gpu/python/attest.py), so the last is
// below twice that, and a call within it hangs no sooner than one alone.
constexpr double longest_doubled_seconds = 2 * longest_batch_seconds;

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
  const double batch_seconds = hang_seconds_ > 0 ? longest_doubled_seconds + hang_seconds_ : 0;
  const wire::Json answer = ask(*session_, {{"time", wire::from_case(c)}, {"repeats", repeats}},
                                {.kernel_seconds = hang_seconds_, .own_seconds = 0, .batch_seconds = batch_seconds});
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
