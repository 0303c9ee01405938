#include "ahead_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

namespace attest {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr int settled = 16, followed = 48;  // key tiles
constexpr double under_way = 7;             // products of a warpgroup (issue.csv)

/// What a part of the softmax keeps busy.
enum Pipe : std::uint8_t { alu, fma, exponential, no_pipe };
constexpr std::size_t pipes = 3;

struct Part {
  Pipe pipe = no_pipe;
  double cycles = 0, beside = 1;  // with nothing beside it; times as long beside products
  double from_tensor = 0;         // of each of those cycles, what products lose
};

/// Before a warpgroup waits for O += P V, and after.
struct Softmax {
  std::vector<Part> ahead, after;
};

Softmax softmax_of(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device) {
  const double of_maxima = std::min(1.0, plan.softmax_ahead / 1000.0);
  const double of_exponentials = std::clamp(plan.softmax_ahead / 1000.0 - 1, 0.0, 1.0);
  const double exponentials = d.exp + d.scaling, room = (1 - of_exponentials) * exponentials;
  const double hidden = std::min(1.0, room / (d.packing + d.rescaling));
  const auto maxima = [&](double part) { return Part{alu, part * d.maxima, device.alu_beside_wgmma}; };
  const auto exponentials_of = [&](double part) {
    return Part{exponential, part * exponentials, device.scaled_exp_beside_wgmma};
  };
  const Part exchange{no_pipe, d.exchange, device.alu_beside_wgmma};
  Softmax s;
  s.ahead = {maxima(of_maxima), exponentials_of(of_exponentials)};
  s.after = {maxima(1 - of_maxima), exponentials_of(1 - of_exponentials)};
  auto& exchanging = of_maxima < 1 ? s.after : s.ahead;
  exchanging.insert(exchanging.begin() + 1, exchange);
  if (d.modifiers > 0) {
    auto& modifying = of_maxima > 0 ? s.ahead : s.after;
    modifying.insert(modifying.begin(), {fma, d.modifiers, device.fma_beside_wgmma, 1 / device.fma_instruction_cycles});
  }
  s.after.push_back({alu, (1 - hidden) * d.packing, device.alu_beside_wgmma});
  s.after.push_back({fma, (1 - hidden) * d.rescaling, device.fma_beside_wgmma, 1 / device.fma_instruction_cycles});
  // V's copy is waited for beside the scores
  s.after.push_back({no_pipe, d.fixed - d.exchange - d.among_products + d.copy_gate + d.turn_gate});
  return s;
}

/// How many warpgroups one meets at each pipe, by how many others are at their softmax: mean value analysis.
std::vector<std::array<double, pipes>> met_of(const Softmax& s, std::size_t others) {
  std::array<double, pipes + 1> demand{};
  for (const auto* parts : {&s.ahead, &s.after})
    for (const Part& p : *parts) demand[p.pipe] += p.cycles;
  std::vector<std::array<double, pipes>> met(1);
  for (std::size_t n = 1; n <= others; ++n) {
    std::array<double, pipes> at{};
    double round = demand[no_pipe];
    for (std::size_t p = 0; p < pipes; ++p) round += at[p] = demand[p] * (1 + met.back()[p]);
    for (double& x : at) x *= round > 0 ? static_cast<double>(n) / round : 0;
    met.push_back(at);
  }
  return met;
}

class Ahead {
 public:
  Ahead(const StepDemand& d, const KernelPlan& plan, const DeviceSpec& device, int ctas)
      : latency_(device.wgmma_latency_cycles), a_cta_(static_cast<std::size_t>(std::max(1, plan.num_warps / 4))) {
    const Softmax softmax = softmax_of(d, plan, device);
    parts_ = softmax.ahead, waits_at_ = parts_.size();
    parts_.insert(parts_.end(), softmax.after.begin(), softmax.after.end());
    warpgroups_.resize(a_cta_ * static_cast<std::size_t>(ctas)), turns_.resize(static_cast<std::size_t>(ctas));
    met_ = met_of(softmax, warpgroups_.size() - 1);
    const double headdim = plan.columns(Operand::q), headdim_v = plan.columns(Operand::v);
    const double scores = d.tensor * headdim / (headdim + headdim_v), output = d.tensor - scores;
    const double products = static_cast<double>(plan.tile_n) / plan.k_step() * plan.m_blocks();
    left_when_issued_ = output * std::min(1.0, under_way / products);
    until_issued_ = d.tensor - left_when_issued_;
  }

  double follow() {
    double from = 0;
    while (warpgroups_.front().tile < followed) {
      while (pass_gates()) {
      }
      if (warpgroups_.front().tile == settled && from == 0) from = now_;
      advance(until_next());
    }
    return (now_ - from) / (followed - settled);
  }

 private:
  enum Stage : std::uint8_t { before_turn, before_scores, at_softmax };
  struct Warpgroup {
    Stage stage = before_turn;
    int tile = 0;
    std::size_t part = 0;
    double left = 0;                                  // cycles of the part
    double scores_seen = never, output_seen = never;  // when
    bool waits(std::size_t waits_at, double now) const {
      return stage != at_softmax || (part == waits_at && output_seen > now);
    }
  };
  struct Products {
    std::size_t of = 0;
    bool last = false;  // else they are done when the last is issued
    double left = 0;
  };

  bool pass_gates() {
    bool any = false;
    for (std::size_t i = 0; i < warpgroups_.size(); ++i) {
      Warpgroup& w = warpgroups_[i];
      std::size_t& whose = turns_[i / a_cta_];
      if (w.stage == before_turn && whose == i % a_cta_) {
        products_.push_back({i, false, until_issued_}), products_.push_back({i, true, left_when_issued_});
        w.scores_seen = w.output_seen = never;
        w.stage = before_scores, any = true;
      } else if (w.stage == before_scores && w.scores_seen <= now_) {
        w.stage = at_softmax, w.part = 0, w.left = parts_.front().cycles;
        whose = (whose + 1) % a_cta_, any = true;
      }
    }
    return any;
  }
  std::size_t running() const {
    return static_cast<std::size_t>(std::count_if(warpgroups_.begin(), warpgroups_.end(),
                                                  [&](const Warpgroup& w) { return !w.waits(waits_at_, now_); }));
  }
  /// Of a part's cycles, how many pass in one.
  double rate(const Warpgroup& w, std::size_t n) const {
    const Part& p = parts_[w.part];
    const double beside = products_.empty() ? 0 : p.beside - 1;
    return 1 / (1 + beside + (p.pipe == no_pipe ? 0 : met_[n - 1][p.pipe]));
  }
  double products_rate(std::size_t n) const {
    double rate_left = 1;
    for (const Warpgroup& w : warpgroups_)
      if (!w.waits(waits_at_, now_)) rate_left -= parts_[w.part].from_tensor * rate(w, n);
    return std::max(rate_left, 0.01);
  }
  double until_next() const {
    double step = never;
    const std::size_t n = running();
    if (!products_.empty()) step = products_.front().left / products_rate(n);
    for (const Warpgroup& w : warpgroups_) {
      if (!w.waits(waits_at_, now_)) step = std::min(step, w.left / rate(w, n));
      for (const double seen : {w.scores_seen, w.output_seen})
        if (seen > now_) step = std::min(step, seen - now_);
    }
    return step;
  }
  void advance(double step) {
    const std::size_t n = running();
    const double of_products = step * products_rate(n);
    for (Warpgroup& w : warpgroups_) {
      if (w.waits(waits_at_, now_)) continue;
      w.left -= step * rate(w, n);
      if (w.left > 1e-9) continue;
      if (++w.part < parts_.size())
        w.left = parts_[w.part].cycles;
      else
        w.stage = before_turn, ++w.tile;
    }
    now_ += step;
    if (products_.empty() || (products_.front().left -= of_products) > 1e-9) return;
    Warpgroup& w = warpgroups_[products_.front().of];
    (products_.front().last ? w.output_seen : w.scores_seen) = now_ + latency_;
    products_.pop_front();
  }

  double latency_;
  std::size_t a_cta_;  // warpgroups
  std::vector<Part> parts_;
  std::size_t waits_at_ = 0;  // the part before which it waits for O += P V
  std::vector<std::array<double, pipes>> met_;
  double until_issued_ = 0, left_when_issued_ = 0;
  std::vector<Warpgroup> warpgroups_;  // CTA by CTA
  std::vector<std::size_t> turns_;     // a CTA's: whose products come next
  std::deque<Products> products_;
  double now_ = 0;
};

}  // namespace

double ahead_time(const StepDemand& demand, const KernelPlan& plan, const DeviceSpec& device, int ctas) {
  const double shared_memory = (demand.smem + demand.operands) * ctas * plan.num_warps;
  return std::max(shared_memory, Ahead(demand, plan, device, ctas).follow());
}

}  // namespace attest
