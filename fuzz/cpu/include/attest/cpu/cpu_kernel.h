// The CPU kernel: the recorded forward and backward behind the Kernel interface, their tiles chosen at run time.
#pragma once
#include <string_view>
#include <unordered_map>

#include "attest/gpu/kernel.h"
#include "attest/plan/catalog.h"
#include "attest/simulator/cpu_backward.h"
#include "attest/simulator/cpu_forward.h"
#include "attest/simulator/hazards.h"

namespace attest {

/// What a user may fix of a CPU plan; 0 or unset fields are drawn from the case's seed.
struct CpuPlanSpec {
  int tile_m = 0, tile_n = 0, num_warps = 0, stages = 0;
  int q_in_registers = -1, lazy_rescale = -1, merged_wait = -1;  // -1: drawn
  int key_order = 0, grid_order = 0;                             // 1 + KeyOrder; 1: heads before batch, 2: batch first
  int packed_heads = 0;  // 1: heads that share a key head share tiles, where nothing tells them apart; 0: never
};

/// "tile_m=64,tile_n=32,warps=4,stages=2,q_in_registers=1,lazy_rescale=0,merged_wait=1,order=ascending,
/// grid=tiles-batch-heads,packed_heads=1", any subset once each, or nothing. Throws InvalidInput naming the field.
CpuPlanSpec parse_cpu_plan_spec(std::string_view text);

/// Throws InvalidInput naming `kernel` where `why`, a sentence of the plan's invalid(), is one; `what` it makes none
/// of.
void refuse_impossible(const KernelPlan& plan, const char* why, std::string_view what);

/// The plan that the CPU kernel runs a case with: a pure function of both arguments. Throws InvalidInput if the fields
/// that were fixed make no kernel.
KernelPlan cpu_plan(const CpuPlanSpec& spec, const Case& c);

/// Likewise of a backward: with tile_m, num_warps and stages where they are fixed, and tile_n in whole steps of the
/// warps. Deterministic where the case asks for it.
BackwardPlan cpu_backward_plan(const CpuPlanSpec& spec, const Case& c);

/// Which programs of a run are looked through for hazards: the first two, and then as many as have `max_steps`
/// together. A case of thousands of keys has a long program for every tile, which differ in length alone.
class InspectedPrograms {
 public:
  explicit InspectedPrograms(std::size_t max_steps) : max_steps_(max_steps) {}
  /// Whether one of `steps` steps is; it counts then.
  bool take(std::size_t steps) {
    if (steps == 0 || (programs_ >= 2 && steps_ > max_steps_)) return false;
    ++programs_;
    steps_ += steps;
    return true;
  }

 private:
  std::size_t max_steps_, programs_ = 0, steps_ = 0;
};

/// Hazards of the programs of a forward. Programs that touch shared memory alike are checked once and remembered, which
/// changes nothing but the time it takes.
class HazardMemory {
 public:
  /// Starts on another forward.
  void begin(const KernelPlan& plan);
  void inspect(const Program& program);
  /// What was found since begin(), each name once.
  const std::vector<std::string>& found() const { return found_; }

 private:
  static constexpr std::size_t max_steps = 4000, max_remembered_bytes = std::size_t{64} << 20;
  KernelPlan plan_;
  InspectedPrograms inspected_{max_steps};
  std::size_t remembered_bytes_ = 0;
  std::vector<std::string> found_;
  std::unordered_map<std::string, std::vector<std::string>> seen_;
};

/// Runs cases through programs recorded from the plan that `spec` and the case give. A planted bug is another behaviour
/// of the same plan. Not for two threads at once.
class CpuKernel : public Kernel {
 public:
  using MakeBehaviour = std::unique_ptr<Behaviour> (*)(const KernelPlan&);

  using MakeBackward = std::unique_ptr<BackwardBehaviour> (*)(const BackwardPlan&);

  explicit CpuKernel(const CpuPlanSpec& spec = {}, MakeBehaviour behaviour = right_behaviour,
                     MakeBackward backward = right_backward);
  const Capability& capability() const override { return capability_; }
  Numerics numerics(const Case& c) const override;
  std::optional<std::string> unsupported(const Case& c) const override;
  RunReport run(const Case& c, const ForwardArgs& args) override;
  /// Launches 2 and 3 of every four run their CTAs the other way round, as a device may: unless the case is
  /// deterministic, repeats need not give the same bits.
  RunReport run_backward(const Case& c, const BackwardArgs& args) override;

  static std::unique_ptr<Behaviour> right_behaviour(const KernelPlan& plan);
  static std::unique_ptr<BackwardBehaviour> right_backward(const BackwardPlan& plan);

 private:
  CpuPlanSpec spec_;
  MakeBehaviour make_behaviour_;
  MakeBackward make_backward_;
  std::uint64_t launches_ = 0;  // of the backward
  Capability capability_;
  HazardMemory hazards_;
};

}  // namespace attest
