#include "turns_time.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace attest {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr int settled = 16, followed = 48;  // key tiles

/// What a warpgroup does with a key tile, in this order. At a gate it waits for a copy or for its turn.
enum Phase : std::uint8_t {
  key_gate,
  key_passed,
  scores,
  scores_end,
  maxima,
  turn_gate,
  turn_passed,
  exponentials,
  value_gate,
  value_passed,
  output,
  output_end
};
constexpr std::size_t phases = 12;

struct Warpgroup {
  std::uint8_t phase = key_gate;
  int tile = 0;
  double left = 0;  // cycles of the phase with nothing beside it
  bool done() const { return tile == followed; }
  bool at_gate() const { return phase == key_gate || phase == turn_gate || phase == value_gate; }
  bool multiplies() const { return !done() && (phase == scores || phase == output); }
  bool waits() const { return done() || at_gate(); }
};

struct Cta {
  std::vector<Warpgroup> warpgroups;
  std::size_t turn = 0;                                  // whose exponentials come next
  std::size_t copies = 0;                                // asked for: K of tile 0, V of tile 0, K of tile 1 ...
  std::array<double, std::size_t{2} * followed> landed;  // when each of them has
  /// Tiles whose K (0) or V (1) every warpgroup has released.
  int released(std::size_t operand) const {
    int least = followed;
    for (const Warpgroup& w : warpgroups)
      least = std::min(least, w.tile + (operand == 0 && w.phase > scores_end ? 1 : 0));
    return least;
  }
};

class Turns {
 public:
  Turns(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, int ctas)
      : latency_(device.l2_latency_cycles), stages_(plan.stages), ctas_(static_cast<std::size_t>(ctas)) {
    for (Cta& cta : ctas_) {
      cta.warpgroups.resize(static_cast<std::size_t>(std::max(1, plan.num_warps / 4)));
      cta.landed.fill(never);
    }
    const double headdim = plan.columns(Operand::q), headdim_v = plan.columns(Operand::v);
    alone_[scores] = d.tensor * headdim / (headdim + headdim_v);
    alone_[output] = d.tensor - alone_[scores];
    alone_[scores_end] = alone_[output_end] = device.wgmma_latency_cycles;
    alone_[key_passed] = alone_[value_passed] = d.copy_gate, alone_[turn_passed] = d.turn_gate;
    const double rest = d.fixed - d.exchange - d.among_products;
    alone_[maxima] = d.modifiers + d.maxima + d.exchange + rest;
    // all else of the softmax stands among exponentials, as far as there is room
    alone_[exponentials] = std::max(d.exp + d.scaling, d.sums - d.modifiers + d.packing + d.rescaling);
    slower_.fill(1);
    slower_[maxima] =
        (device.fma_beside_wgmma * d.modifiers + device.alu_beside_wgmma * (d.maxima + d.exchange) + rest) /
        alone_[maxima];
    slower_[exponentials] = device.scaled_exp_beside_wgmma;
    copy_cycles_ = {plan.tile_bytes(Operand::k) / l2_bytes_per_clock(device),
                    plan.tile_bytes(Operand::v) / l2_bytes_per_clock(device)};
  }

  TurnsTime follow() {
    double from = 0, to = 0;
    const Warpgroup& first = ctas_.front().warpgroups.front();
    while (true) {
      while (copy() || pass_gates()) {
      }
      const double step = until_next();
      if (step == never) break;
      advance(step);
      if (first.tile == settled && from == 0) from = now_;
      if (first.tile == followed && to == 0) to = now_;
    }
    const double key_tile = (to - from) / (followed - settled);
    return {key_tile, std::max(0.0, now_ - followed * key_tile)};
  }

 private:
  /// Asks for the copies whose slot is free; the path from L2 carries one after the other.
  bool copy() {
    bool any = false;
    for (Cta& cta : ctas_) {
      while (cta.copies < cta.landed.size()) {
        const std::size_t operand = cta.copies % 2;
        const int tile = static_cast<int>(cta.copies / 2);
        if (tile - cta.released(operand) >= stages_) break;
        path_free_ = std::max(path_free_, now_ + latency_) + copy_cycles_[operand];
        cta.landed[cta.copies++] = path_free_;
        any = true;
      }
    }
    return any;
  }
  bool pass_gates() {
    bool any = false;
    for (Cta& cta : ctas_) {
      for (std::size_t i = 0; i < cta.warpgroups.size(); ++i) {
        Warpgroup& w = cta.warpgroups[i];
        if (w.done() || !w.at_gate()) continue;
        const std::size_t copied = 2 * static_cast<std::size_t>(w.tile) + (w.phase == value_gate ? 1 : 0);
        if (w.phase == turn_gate ? cta.turn != i : cta.landed[copied] > now_) continue;
        w.left = alone_[++w.phase];
        any = true;
      }
    }
    return any;
  }
  int multiplying() const {
    int n = 0;
    for (const Cta& cta : ctas_)
      n += static_cast<int>(std::count_if(cta.warpgroups.begin(), cta.warpgroups.end(),
                                          [](const Warpgroup& w) { return w.multiplies(); }));
    return n;
  }
  /// Of a phase's cycles, how many pass in one.
  double rate(const Warpgroup& w, int multiplying) const {
    if (w.multiplies()) return 1.0 / multiplying;
    return multiplying > 0 ? 1 / slower_[w.phase] : 1;
  }
  double until_next() const {
    double step = never;
    const int n = multiplying();
    for (const Cta& cta : ctas_) {
      for (const Warpgroup& w : cta.warpgroups)
        if (!w.waits()) step = std::min(step, w.left / rate(w, n));
      for (std::size_t i = 0; i < cta.copies; ++i)
        if (cta.landed[i] > now_) step = std::min(step, cta.landed[i] - now_);
    }
    return step;
  }
  void advance(double step) {
    const int n = multiplying();
    now_ += step;
    for (Cta& cta : ctas_) {
      for (Warpgroup& w : cta.warpgroups) {
        if (w.waits()) continue;
        w.left -= step * rate(w, n);
        if (w.left > 1e-9) continue;
        if (w.phase == exponentials) cta.turn = (cta.turn + 1) % cta.warpgroups.size();
        w.phase = static_cast<std::uint8_t>((w.phase + 1) % phases);
        w.tile += w.phase == key_gate ? 1 : 0;
        if (!w.at_gate()) w.left = alone_[w.phase];
      }
    }
  }

  double latency_;
  int stages_;
  std::vector<Cta> ctas_;
  std::array<double, phases> alone_{}, slower_{};  // cycles of a phase; times as many beside products
  std::array<double, 2> copy_cycles_{};
  double now_ = 0, path_free_ = 0;
};

}  // namespace

TurnsTime turns_time(const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device, int ctas) {
  return Turns(demand, plan, device, ctas).follow();
}

}  // namespace attest
