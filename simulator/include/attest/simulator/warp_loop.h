// How the executors of forward and backward run the warps of a CTA.
#pragma once
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace attest {

/// A warp's asynchronous copies: those since the last commit, and the groups that it has not waited for, oldest first.
template <class Copy>
class CopyGroups {
 public:
  void clear() { open_.clear(), groups_.clear(); }
  void add(const Copy& copy) { open_.push_back(copy); }
  void commit() {
    groups_.push_back(std::move(open_));
    open_.clear();
  }
  /// Calls land(copy) for the copies of the oldest groups, until at most `in_flight` are left.
  template <class Land>
  void wait(int in_flight, Land land) {
    while (static_cast<int>(groups_.size()) > in_flight) {
      for (const Copy& copy : groups_.front()) land(copy);
      groups_.erase(groups_.begin());
    }
  }

 private:
  std::vector<Copy> open_;
  std::vector<std::vector<Copy>> groups_;
};

/// Whether no warp of the program has anything to do.
template <class Program>
bool is_empty(const Program& program) {
  return std::all_of(program.warps.begin(), program.warps.end(), [](const auto& steps) { return steps.empty(); });
}

/// Calls execute(step, w) for every step of the program's warps. They run one after another, each up to its next
/// barrier, in an order that turns at every barrier.
template <class Program, class Execute>
void run_warps(const Program& program, Execute execute) {
  const std::size_t num_warps = program.warps.size();
  std::vector<std::size_t> next(num_warps, 0);
  const auto run_to_barrier = [&](std::size_t w) {  // whether it met one
    const auto& steps = program.warps[w];
    while (next[w] < steps.size()) {
      const auto& step = steps[next[w]++];
      if (step.kind == std::decay_t<decltype(step)>::Kind::barrier) return true;
      execute(step, static_cast<int>(w));
    }
    return false;
  };
  bool running = true;
  for (bool ascending = true; running; ascending = !ascending) {
    running = false;
    for (std::size_t i = 0; i < num_warps; ++i) running |= run_to_barrier(ascending ? i : num_warps - 1 - i);
  }
}

}  // namespace attest
