// Violated orderings on shared memory, found in a program's own addresses rather than guessed from wrong values.
//
// Time is counted in epochs: barriers of the CTA passed. A copy is written from its issue until the wait that covers
// it.
//   read    sees a write of its own warp once that was waited for and the warp synchronised; of another warp once that
//           was waited for and a barrier passed. What it finds must be the tile that it is meant to read.
//   write   needs a barrier since the last read by another warp, and since any other write was complete.
// All warps must pass the same number of barriers.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attest/simulator/expand.h"

namespace attest {

struct Hazard {
  std::string what;        // "K tile 3 is read before its copy was waited for"
  std::int64_t count = 0;  // 16-byte chunks
};

/// Shadow state of every 16-byte chunk. Warps are replayed epoch by epoch.
class HazardChecker {
 public:
  HazardChecker(std::uint32_t smem_bytes, int num_warps)
      : chunks_(smem_bytes / 16), warps_(static_cast<std::size_t>(num_warps)) {}

  void begin(int warp, int epoch) { warp_ = warp, epoch_ = epoch; }
  void step(const Step& step);  // before the accesses of that step
  void shared(const SharedAccess& access);
  void global(const GlobalAccess&) {}
  void matrix_step() {}
  void exponentials(int, int) {}
  void report(const std::string& what) { ++found_[what]; }
  std::vector<Hazard> result() const;

 private:
  struct Write {
    int warp = -1, group = -1;  // group: of asynchronous copies of that warp; -1: immediate
    int epoch = 0, sync = 0;
    Operand operand{};
    int tile = 0;
  };
  struct Chunk {
    Write last;
    std::uint32_t readers = 0;  // warps that read it in `readers_epoch`
    int readers_epoch = -1;
  };
  struct Completion {
    int epoch, sync;
  };
  struct Warp {
    std::vector<Completion> completed;  // by group
    int committed = 0;
    int sync = 0;  // warp-level or CTA barriers passed
  };

  void read(Chunk& chunk);
  void write(Chunk& chunk, bool async);
  bool complete(const Write& w, Completion& when) const;
  std::string name(Operand x, int tile) const;

  std::vector<Chunk> chunks_;
  std::vector<Warp> warps_;
  std::map<std::string, std::int64_t> found_;
  int warp_ = 0, epoch_ = 0;
  Step step_{};
};

/// Every violated ordering of the program, by name.
template <class Plan>
std::vector<Hazard> find_hazards(const Plan& plan, const Program& program) {
  HazardChecker checker(plan.smem_bytes(), plan.num_warps);
  std::vector<std::size_t> next(program.warps.size(), 0);
  bool running = true;
  for (int epoch = 0; running; ++epoch) {
    running = false;
    std::size_t met = 0;
    for (std::size_t warp = 0; warp < program.warps.size(); ++warp) {
      const auto& steps = program.warps[warp];
      checker.begin(static_cast<int>(warp), epoch);
      while (next[warp] < steps.size()) {
        const Step& step = steps[next[warp]++];
        checker.step(step);
        if (step.kind == Step::Kind::barrier) {
          ++met;
          break;
        }
        expand(plan, program.work, step, static_cast<int>(warp), checker);
      }
      running |= next[warp] < steps.size();
    }
    if (met != 0 && met != program.warps.size()) checker.report("some warps meet a barrier that others do not");
  }
  return checker.result();
}

}  // namespace attest
