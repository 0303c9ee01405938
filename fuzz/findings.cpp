#include "findings.h"

#include <algorithm>
#include <chrono>

#include "attest/problem/error.h"

namespace attest {
namespace {

// While a hang is made small, a run of the kernel that takes this many times the longest one that came back hangs too;
// what comes of it is held to the full limit at the end.
constexpr double hang_factor = 20, shortest_hang_seconds = 0.25;

}  // namespace

void Findings::record(const Origin& origin, const Case& c, const Property& property, Verdict verdict) {
  Kind& kind = kinds_[{std::string(property.name), verdict.status}];
  ++kind.seen;
  if (kind.origin && !(origin < *kind.origin)) return;
  kind.property = &property;
  kind.origin = origin;
  kind.found = c;
  kind.verdict = std::move(verdict);
}

std::vector<const Findings::Kind*> Findings::ordered() const {
  std::vector<const Kind*> order;
  for (const auto& [name, kind] : kinds_) order.push_back(&kind);
  std::sort(order.begin(), order.end(), [](const Kind* a, const Kind* b) {
    return std::tie(*a->origin, a->property) < std::tie(*b->origin, b->property);
  });
  if (order.size() > static_cast<std::size_t>(options_.max_failures))
    order.resize(static_cast<std::size_t>(options_.max_failures));
  return order;
}

std::vector<Failure> Findings::list_failures(Judge* judge) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Failure> failures;
  for (const Kind* kind : ordered()) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    const double seconds_left = options_.max_shrink_seconds - spent.count();
    const Shrunk shrunk = judge ? make_small(*judge, *kind, seconds_left) : Shrunk{kind->found, kind->verdict};
    Failure failure;
    failure.property = kind->property->name;
    failure.corpus_file = kind->origin->corpus_file;
    failure.k = kind->origin->index;
    failure.found = kind->found;
    failure.minimal = shrunk.minimal;
    failure.verdict = shrunk.verdict;
    failure.seen = kind->seen;
    failure.shrink_runs = shrunk.runs;
    failure.repro = repro_line(options_.kernel, kind->property->name, shrunk.minimal);
    failures.push_back(std::move(failure));
    replace_in_corpus(*kind, shrunk.minimal);
  }
  return failures;
}

Attempt Findings::attempt_by(Judge& judge, double hang_seconds) const {
  return [&judge, hang_seconds](const Property& property, const Case& c) -> std::optional<Verdict> {
    if (stop_requested()) return std::nullopt;  // the user waits: list what was found as it is
    try {
      return judge.judge(property, c, hang_seconds);
    } catch (const KernelCrashed&) {  // what came before was too much for it; nothing more is to be had
      return std::nullopt;
    }
  };
}

Shrunk Findings::make_small(Judge& judge, const Kind& kind, double seconds_left) const {
  if (kind.verdict.status == Status::hung) return make_small_hung(judge, kind, seconds_left);
  const Attempt attempt = attempt_by(judge, options_.hang_seconds);
  ShrinkLimits limits = options_.shrink;
  limits.max_seconds = std::min(limits.max_seconds, seconds_left);
  Verdict verdict = kind.verdict;
  if (verdict.status == Status::crashed && limits.max_seconds > 0) {
    const std::optional<Verdict> alone = attempt(*kind.property, kind.found);
    if (alone && alone->status != Status::crashed)
      verdict.detail += "; not where this case is run alone: the kernel may have damaged memory in an earlier one";
  }
  return shrink(attempt, *kind.property, kind.found, verdict, limits);
}

Shrunk Findings::make_small_hung(Judge& judge, const Kind& kind, double seconds_left) const {
  const double longest = std::max(shortest_hang_seconds, hang_factor * judge.longest_run_seconds());
  ShrinkLimits limits = options_.shrink;
  limits.max_seconds = std::min(limits.max_seconds, seconds_left);
  Shrunk small = shrink(attempt_by(judge, std::min(options_.hang_seconds, longest)), *kind.property, kind.found,
                        kind.verdict, limits);
  if (small.minimal == kind.found) return small;
  const auto verdict = attempt_by(judge, options_.hang_seconds)(*kind.property, small.minimal);
  ++small.runs;
  if (verdict && verdict->status == Status::hung) {
    small.verdict = *verdict;
    return small;
  }
  Shrunk as_found{kind.found, kind.verdict};
  as_found.runs = small.runs;
  return as_found;
}

CorpusEntry Findings::entry_of(const Case& c, const Property& property, Status status) const {
  return {c, std::string(property.name), options_.kernel, status, generator_version, utc_now()};
}

// The corpus is kept beside the campaign, and never ends it.
std::optional<std::string> Findings::add(const CorpusEntry& entry) {
  if (!corpus_) return std::nullopt;
  try {
    std::optional<std::string> name = corpus_->add(entry);
    if (name) added_.push_back(*name);
    return name;
  } catch (const EnvironmentError& error) {
    corpus_error_ = error.what();
    return std::nullopt;
  }
}

void Findings::join_corpus(const Case& c, const Property& property, Status status) {
  add(entry_of(c, property, status));
}

void Findings::replace_in_corpus(const Kind& kind, const Case& minimal) {
  if (!corpus_ || minimal == kind.found) return;
  const Status status = kind.verdict.status;
  add(entry_of(minimal, *kind.property, status));
  // Only what this campaign added: others may replay the rest.
  const std::string as_found = corpus_file_name(entry_of(kind.found, *kind.property, status));
  if (std::erase(added_, as_found) > 0) corpus_->remove(as_found);
}

}  // namespace attest
