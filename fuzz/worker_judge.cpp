#include <algorithm>
#include <chrono>
#include <deque>

#include "judge.h"
#include "worker_session.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double stop_grace_seconds = 2;

// Cases are asked for ahead, so that the worker never waits for its parent; but no more than it gets through in this
// time, so that a limit of time is kept with a slow kernel too.
constexpr double ahead_seconds = 0.02;
constexpr double most_ahead = 16;

// Only the kernel's calls have the limit that the user gives. What attest does beside them in a property, such as the
// truth of a large case, has one that a worker whose memory the kernel damaged does not outlive: many times what
// that work takes.
constexpr double least_own_seconds = 30, own_seconds_per_multiply_add = 2e-6;

WorkerSession::Limits limits_of(double hang_seconds, std::int64_t work) {
  if (hang_seconds == 0) return {};
  const double own_seconds = least_own_seconds + own_seconds_per_multiply_add * static_cast<double>(work);
  return {hang_seconds, own_seconds};
}

class WorkerJudge : public Judge {
 public:
  WorkerJudge(const WorkerProgram& program, const CampaignOptions& options)
      : options_(options),
        session_(program,
                 {{"kernel", options.kernel},
                  {"seed", options.seed},
                  {"budget", {options.budget.min_work, options.budget.max_work, options.budget.max_seqlen}},
                  {"threads", 1}},
                 stop_grace_seconds) {
    (void)session_.start();  // what cannot be made is told at once; where stopping was asked for, no case follows
  }

  void run(const Next& next, const Done& done) override {
    std::deque<Outcome> open;  // in the order in which they were sent; the first is the one in flight
    bool more = true;
    Clock::time_point before = Clock::now();
    double seconds_a_case = ahead_seconds;
    for (;;) {
      while (more && static_cast<double>(open.size()) < std::clamp(ahead_seconds / seconds_a_case, 1.0, most_ahead)) {
        const std::optional<std::uint64_t> k = next();
        more = k.has_value();
        if (!more) break;
        if (open.empty()) before = Clock::now();
        open.emplace_back().k = *k;
        if (!session_.start()) return;
        send(*k);
      }
      if (open.empty()) return;
      wire::Json message;
      switch (session_.receive(message, limits_of(options_.hang_seconds, options_.budget.max_work))) {
        case WorkerSession::Event::stopped:
          session_.end();
          return;
        case WorkerSession::Event::lost:
          finish(open, done, &session_.loss(), session_.lost_in());
          if (!open.empty() && !session_.start()) return;
          for (const Outcome& waiting : open) send(waiting.k);
          break;
        case WorkerSession::Event::message:
          if (message.contains("threw")) {
            const Verdict threw = wire::to_verdict(message.at("threw"));
            finish(open, done, &threw);
            break;
          }
          if (!message.contains("done")) {
            open.front().failed.push_back(failure_in(message));
            continue;
          }
          open.front().unsupported = message.contains("unsupported");
          finish(open, done);
          break;
      }
      const Clock::time_point now = Clock::now();
      constexpr double weight = 0.2;  // of the newest in the moving average
      seconds_a_case += weight * (std::chrono::duration<double>(now - before).count() - seconds_a_case);
      before = now;
    }
  }

  std::optional<Verdict> judge(const Property& property, const Case& c, double hang_seconds) override {
    if (!session_.start()) return std::nullopt;
    session_.send({{"judge", property.name}, {"case", wire::from_case(c)}});
    wire::Json message;
    switch (session_.receive(message, limits_of(hang_seconds, work_of(c.problem)))) {
      case WorkerSession::Event::stopped:
        session_.end();
        return std::nullopt;
      case WorkerSession::Event::lost:
        return session_.loss();
      case WorkerSession::Event::message:
        break;
    }
    if (message.contains("unsupported")) return std::nullopt;
    return wire::to_verdict(message.at(message.contains("threw") ? "threw" : "verdict"));
  }

  double longest_run_seconds() const override { return session_.longest_run_seconds(); }

 private:
  void send(std::uint64_t k) { session_.send({{"run", k}}); }

  static std::pair<const Property*, Verdict> failure_in(const wire::Json& message) {
    return {&property_named(message.at("property").get_ref<const std::string&>()),
            wire::to_verdict(message.at("verdict"))};
  }

  // The first of `open` is over: judged to its end, or with `end` in the property `in`, or before any (null).
  void finish(std::deque<Outcome>& open, const Done& done, const Verdict* end = nullptr, const Property* in = nullptr) {
    Outcome outcome = std::move(open.front());
    open.pop_front();
    outcome.the_case = generate_case(options_.seed, outcome.k, options_.budget);
    if (!outcome.unsupported) outcome.judged = properties_for(options_.seed, outcome.k, outcome.the_case);
    if (end) {
      const auto at = std::find(outcome.judged.begin(), outcome.judged.end(), in);
      const Property* const property = at == outcome.judged.end() ? outcome.judged.front() : *at;
      outcome.judged.erase(at == outcome.judged.end() ? outcome.judged.begin() + 1 : at + 1, outcome.judged.end());
      outcome.failed.emplace_back(property, *end);
    }
    done(std::move(outcome));
  }

  const CampaignOptions& options_;
  WorkerSession session_;
};

}  // namespace

std::unique_ptr<Judge> make_worker_judge(const WorkerProgram& program, const CampaignOptions& options) {
  return std::make_unique<WorkerJudge>(program, options);
}

}  // namespace attest
