#include <fmt/format.h>

#include "attest/fuzz/check.h"
#include "attest/fuzz/progress.h"
#include "attest/problem/error.h"
#include "single_session.h"

namespace attest {
namespace {

double seconds_since(std::int64_t ns) { return static_cast<double>(monotonic_ns() - ns) * 1e-9; }

}  // namespace

WorkerSession single_session(const WorkerProgram& program, const std::string& kernel) {
  constexpr double stop_grace_seconds = 0;  // nothing is worth waiting for
  // The kernel's name is all that the worker must know; one case may have all threads.
  return {program, {{"kernel", kernel}, {"seed", 0}, {"budget", {0, 0, 0}}, {"threads", 0}}, stop_grace_seconds};
}

wire::Json ask(WorkerSession& session, const wire::Json& question, const WorkerSession::Limits& limits) {
  if (!session.start()) throw EnvironmentError("interrupted");
  session.send(question);
  wire::Json answer;
  switch (session.receive(answer, limits)) {
    case WorkerSession::Event::lost:
      throw KernelCrashed(fmt::format("{}: {}", to_string(session.loss().status), session.loss().detail));
    case WorkerSession::Event::stopped:
      throw EnvironmentError("interrupted");
    case WorkerSession::Event::message:
      break;
  }
  if (answer.contains("threw"))
    throw KernelCrashed(fmt::format("the kernel fails: {}", wire::to_verdict(answer.at("threw")).detail));
  return answer;
}

CheckResult run_check(const WorkerProgram& program, const CheckOptions& options) {
  WorkerSession session = single_session(program, options.kernel);
  return run_check(session, options);
}

CheckResult run_check(WorkerSession& session, const CheckOptions& options) {
  CheckResult result;
  const auto interrupted = [&] {
    clear_stop();
    result.interrupted = true;
    return result;
  };
  if (!session.start()) return interrupted();
  wire::Json request = {{"check", options.property},
                        {"case", wire::from_case(options.the_case)},
                        {"diffs", options.diffs},
                        {"truth", options.truth},
                        {"dry_run", options.dry_run}};
  if (options.mask) request["mask"] = wire::from_mask_options(options.mask_options);
  session.send(request);
  const std::int64_t start = monotonic_ns();
  Progress progress(options.progress, 0, 0);
  const auto tick = [&] {
    const Property* const property = session.current_property();
    progress.say(seconds_since(start),
                 fmt::format("{}, {:.0f} s", property ? property->name : "preparing", seconds_since(start)));
  };
  // The truth of a large case takes what it takes: only the kernel's runs have a limit.
  const WorkerSession::Limits limits{options.hang_seconds, 0};
  for (;;) {
    wire::Json message;
    switch (session.receive(message, limits, tick)) {
      case WorkerSession::Event::stopped:
        return interrupted();
      case WorkerSession::Event::lost: {
        const Property* const property = session.lost_in() ? session.lost_in() : &first_property(options);
        result.verdicts.emplace_back(property->name, session.loss());
        return result;
      }
      case WorkerSession::Event::message:
        break;
    }
    if (message.contains("property")) {
      result.verdicts.emplace_back(message.at("property").get<std::string>(), wire::to_verdict(message.at("verdict")));
      continue;
    }
    if (message.contains("unsupported")) result.unsupported = message.at("unsupported").get<std::string>();
    if (message.contains("mask")) result.mask = wire::to_mask_report(message.at("mask"));
    for (const wire::Json& difference : message.at("differences"))
      result.differences.push_back(wire::to_difference(difference));
    return result;
  }
}

}  // namespace attest
