#include "attest/reference/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "attest/reference/key_range.h"
#include "channel.h"
#include "statistical_limits.h"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double largest_finite(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp16:
      return 65504;
    case Dtype::bf16:
      return 0x1.fep127;
    case Dtype::fp32:
      return std::numeric_limits<float>::max();
    case Dtype::fp8_e4m3:
      return 448;
    case Dtype::fp8_e5m2:
      return 57344;
  }
  return 0;
}

// Whether `value` belongs where the truth is NaN or Inf, or is finite where the truth is.
bool same_kind(double truth, double value, double bound, double largest, bool nan_for_inf, bool inf_for_nan) {
  if (std::isnan(truth)) return std::isnan(value) || (inf_for_nan && value == infinity);
  if (std::isinf(truth)) return value == truth || (nan_for_inf && std::isnan(value));
  if (std::isfinite(value)) return true;
  return std::isinf(value) && std::copysign(1.0, value) * truth + bound >= largest;  // rounded past the largest number
}

double over(double error, double bound) { return error == 0 ? 0 : bound > 0 ? error / bound : infinity; }

// The nearest to a violation so far, over all rules.
struct Worst {
  double ratio = -1;
  std::string_view rule;
  const Channel* channel = nullptr;
  Element element{};
  double bound = 0;

  void offer(double r, std::string_view new_rule, const Channel& new_channel, const Element& where, double new_bound) {
    if (!(r > ratio)) return;
    *this = {r, new_rule, &new_channel, where, new_bound};
  }
};

class Comparison {
 public:
  const std::vector<RuleFinding>& findings() const { return findings_; }

  Comparison(const Problem& problem, const Truth& truth, const Outputs& outputs)
      : problem_(problem), truth_(truth), outputs_(outputs) {}

  Verdict run() {
    verdict_.numerics = truth_.numerics.name;
    if (outputs_.gradients && truth_.gradients.dq.extents[0] == 0)
      throw std::logic_error("compare: gradients without their truth; add_gradients() was not called");
    channels_ = channels_of(problem_, truth_, outputs_);
    if (!shapes() || !writes()) return verdict_;
    for (const Channel& channel : channels_)
      if (!kinds(channel)) return verdict_;
    for (const Channel& channel : channels_) worst_case(channel);
    if (!truth_.o_variance.values.empty()) statistical_o(channels_[0]);
    if (outputs_.lse && !truth_.lse_variance.values.empty()) statistical_lse(channels_[1]);
    judge();
    return verdict_;
  }

 private:
  bool fail(Status status, std::string_view rule, std::string_view channel, std::string detail) {
    verdict_.status = status;
    verdict_.rule = std::string(rule);
    verdict_.channel = std::string(channel);
    verdict_.error_over_budget = infinity;
    verdict_.detail = std::move(detail);
    return false;
  }

  bool shapes() {
    for (const Channel& c : channels_) {
      const auto &w = c.truth->extents, &g = c.got->extents;
      if (w == g && c.truth->values.size() == c.got->values.size()) continue;
      return fail(Status::wrong_shape, "shape", c.name,
                  fmt::format("{} has the shape [{}, {}, {}, {}], not [{}, {}, {}, {}]", c.name, g[0], g[1], g[2], g[3],
                              w[0], w[1], w[2], w[3]));
    }
    return true;
  }

  bool writes() {
    if (outputs_.out_of_bounds > 0)
      return fail(Status::out_of_bounds, "out of bounds", "",
                  fmt::format("{} bytes outside the logical domain were changed", outputs_.out_of_bounds));
    for (const Channel& c : channels_)
      if (c.unwritten > 0)
        return fail(Status::unwritten, "unwritten", c.name,
                    fmt::format("{} elements of {} were never written", c.unwritten, c.name));
    return true;
  }

  bool kinds(const Channel& c) {
    const double largest = largest_finite(c.dtype);
    std::int64_t wrong = 0, first = 0;
    const auto count = static_cast<std::int64_t>(c.truth->values.size());
    for (std::int64_t n = 0; n < count; ++n) {
      const double truth = c.truth->values[n];
      const double bound = c.bound->values[n];
      const bool nan_for_inf = c.of != Channel::Of::lse || truth > 0;
      const bool inf_for_nan = c.of == Channel::Of::lse && bound == infinity;  // a score of +Inf
      if (same_kind(truth, c.got->values[n], bound, largest, nan_for_inf, inf_for_nan)) continue;
      if (inside(problem_, c, position(*c.truth, n)) && wrong++ == 0) first = n;
    }
    if (wrong == 0) return true;
    locate(c, position(*c.truth, first));
    return fail(Status::wrong_values, "nan", c.name,
                fmt::format("{} is {} where the truth is {} ({} elements like it); {}",
                            element_name(c, verdict_.element), verdict_.value, verdict_.expected, wrong, visible(c)));
  }

  void worst_case(const Channel& c) {
    double largest = -1;
    std::size_t where = 0;
    RuleFinding finding{"worst case", c.name};
    const Tensor& truth = *c.truth;
    const auto row = static_cast<std::size_t>(truth.extents[3]);
    for (std::size_t first = 0; first < truth.values.size(); first += row) {
      const bool pairs = c.of == Channel::Of::pairs;
      if (!pairs && !inside(problem_, c, position(truth, static_cast<std::int64_t>(first)))) continue;
      double row_largest = -1;
      for (std::size_t n = first; n < first + row; ++n) {
        const double t = truth.values[n];
        if (!std::isfinite(t) || !std::isfinite(c.got->values[n])) continue;
        const double ratio = over(std::abs(c.got->values[n] - t), c.bound->values[n]);
        if (pairs && ratio > 1 && !inside(problem_, c, position(truth, static_cast<std::int64_t>(n)))) continue;
        if (ratio > row_largest) row_largest = ratio;
        if (ratio > largest) largest = ratio, where = n;
      }
      finding.judged += row_largest >= 0;
      finding.over += row_largest > 1;
    }
    if (largest >= 0) {
      worst_.offer(largest, "worst case", c, position(truth, static_cast<std::int64_t>(where)), c.bound->values[where]);
      finding.error_over_budget = largest;
    }
    findings_.push_back(finding);
  }

  void statistical_o(const Channel& c) {
    const auto [batch, seqlen, heads, dim] = truth_.forward.o.extents;
    if (dim < fewest_columns) return;
    const std::int64_t blocks = (seqlen + rows_per_block - 1) / rows_per_block;
    const auto num_rows = static_cast<double>(batch * seqlen * heads);
    RuleFinding rows{"statistical row", "o"}, row_blocks{"statistical block", "o"};
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t block = 0; block < blocks; ++block) {
          double block_sum = 0, block_count = 0, largest = -1;
          IndependentRows block_independent;
          std::array<std::int64_t, 4> where{};
          for (std::int64_t i = block * rows_per_block; i < std::min(seqlen, (block + 1) * rows_per_block); ++i) {
            double row_sum = 0, row_count = 0, row_largest = -1;
            std::int64_t column = 0;
            for (std::int64_t d = 0; d < dim; ++d) {
              const std::int64_t n = truth_.forward.o.index(b, i, h, d);
              const double variance = truth_.o_variance.values[n];
              const double error = outputs_.o.values[n] - truth_.forward.o.values[n];
              if (!(variance > 0) || !std::isfinite(error)) continue;
              const double square = error * error / variance;
              row_sum += square;
              row_count += 1;
              if (square > row_largest) row_largest = square, column = d;
            }
            if (row_count < fewest_columns) continue;
            const double roundings = only_P_rounds(truth_.numerics) ? truth_.roundings.at(b, h, i, 0) : infinity;
            const double independent = independent_columns(dim, key_ranges(problem_, b, i).size(), roundings);
            const double R = std::sqrt(row_sum / row_count);
            const double limit = std::sqrt(std::max(smallest_row_limit, mean_square_limit(independent, num_rows)));
            const std::int64_t at = truth_.forward.o.index(b, i, h, column);
            see(rows, R / limit);
            worst_.offer(R / limit, "statistical row", c, {b, i, h, column},
                         limit * std::sqrt(truth_.o_variance.values[at]));
            block_sum += row_sum;
            block_count += row_count;
            block_independent.add(independent, truth_.alike.values.empty() ? 0 : truth_.alike.at(b, h, i, 0));
            if (row_largest > largest) largest = row_largest, where = {b, i, h, column};
          }
          if (block_count == 0) continue;
          const auto num_blocks = static_cast<double>(batch * heads * blocks);
          const double limit =
              std::max(smallest_block_limit, mean_square_limit(block_independent.number(), num_blocks));
          const std::int64_t at = truth_.forward.o.index(where[0], where[1], where[2], where[3]);
          const double G = std::sqrt(block_sum / block_count / limit);
          see(row_blocks, G);
          worst_.offer(G, "statistical block", c, where, std::sqrt(limit * truth_.o_variance.values[at]));
        }
    findings_.insert(findings_.end(), {rows, row_blocks});
  }

  void statistical_lse(const Channel& c) {
    const double limit = deviation_limit(static_cast<double>(truth_.forward.lse.values.size()));
    RuleFinding finding{"statistical lse", "lse"};
    for (std::size_t n = 0; n < truth_.forward.lse.values.size(); ++n) {
      const double variance = truth_.lse_variance.values[n];
      const double error = outputs_.lse->values[n] - truth_.forward.lse.values[n];
      if (!(variance > 0) || !std::isfinite(error)) continue;
      const double z = std::abs(error) / std::sqrt(variance) / limit;
      see(finding, z);
      worst_.offer(z, "statistical lse", c, position(truth_.forward.lse, static_cast<std::int64_t>(n)),
                   limit * std::sqrt(variance));
    }
    findings_.push_back(finding);
  }

  static void see(RuleFinding& finding, double ratio) {
    finding.judged += 1;
    finding.over += ratio > 1;
    finding.error_over_budget = std::max(finding.error_over_budget, ratio);
  }

  void judge() {
    if (worst_.ratio < 0) {  // nothing finite to compare
      verdict_.rule = "kinds";
      verdict_.detail = "passed: nothing finite to compare";
      return;
    }
    const Channel& c = *worst_.channel;
    locate(c, worst_.element);
    verdict_.rule = std::string(worst_.rule);
    verdict_.channel = std::string(c.name);
    verdict_.bound = worst_.bound;
    verdict_.error_over_budget = worst_.ratio;
    verdict_.status = worst_.ratio > 1 ? Status::wrong_values : Status::passed;
    verdict_.detail =
        fmt::format("{}: {} is {:.9g}, truth {:.9g}, {} of the {} budget ({}); {}", to_string(verdict_.status),
                    element_name(c, worst_.element), verdict_.value, verdict_.expected, ratio_text(worst_.ratio),
                    worst_.rule, verdict_.numerics, visible(c));
  }

  void locate(const Channel& c, const Element& at) {
    const auto n = static_cast<std::size_t>(c.truth->index(at[0], at[1], at[2], at[3]));
    verdict_.element = at;
    verdict_.value = c.got->values[n];
    verdict_.expected = c.truth->values[n];
    verdict_.bound = c.bound->values[n];
    verdict_.visible_keys = visible_of(problem_, c, at);
  }

  std::string visible(const Channel& c) const {
    if (c.of == Channel::Of::heads) return "over all rows";
    return (c.of == Channel::Of::key_rows ? "queries " : "keys ") + verdict_.visible_keys;
  }

  const Problem& problem_;
  const Truth& truth_;
  const Outputs& outputs_;
  std::vector<Channel> channels_;
  Verdict verdict_;
  Worst worst_;
  std::vector<RuleFinding> findings_;
};

}  // namespace

Verdict compare(const Problem& problem, const Truth& truth, const Outputs& outputs,
                std::vector<RuleFinding>* findings) {
  Comparison comparison(problem, truth, outputs);
  Verdict verdict = comparison.run();
  if (findings) *findings = comparison.findings();
  return verdict;
}

}  // namespace attest
