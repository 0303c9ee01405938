#include "attest/reference/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attest/reference/attends.h"
#include "attest/reference/key_range.h"
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
bool same_kind(double truth, double value, double bound, double largest, bool nan_for_inf) {
  if (std::isnan(truth)) return std::isnan(value);
  if (std::isinf(truth)) return value == truth || (nan_for_inf && std::isnan(value));
  if (std::isfinite(value)) return true;
  return std::isinf(value) && std::copysign(1.0, value) * truth + bound >= largest;  // rounded past the largest number
}

double over(double error, double bound) { return error == 0 ? 0 : bound > 0 ? error / bound : infinity; }

std::string visible_keys(const Problem& problem, std::int64_t b, std::int64_t i) {
  std::string text;
  for (std::int64_t j = 0; j < problem.seqlen_k; ++j) {
    if (!attends(problem, b, i, j)) continue;
    std::int64_t last = j;
    while (last + 1 < problem.seqlen_k && attends(problem, b, i, last + 1)) ++last;
    if (!text.empty()) text += ", ";
    text += last == j ? fmt::format("{}", j) : fmt::format("{}-{}", j, last);
    j = last;
  }
  return text.empty() ? "none" : text;
}

// The nearest to a violation so far, over all rules.
struct Worst {
  double ratio = -1;
  std::string_view rule, channel;
  std::array<std::int64_t, 4> element{};
  double bound = 0;

  void offer(double r, std::string_view new_rule, std::string_view new_channel, std::array<std::int64_t, 4> where,
             double new_bound) {
    if (!(r > ratio)) return;
    *this = {r, new_rule, new_channel, where, new_bound};
  }
};

class Comparison {
 public:
  const std::vector<RuleFinding>& findings() const { return findings_; }

  Comparison(const Problem& problem, const Truth& truth, const Outputs& outputs)
      : problem_(problem), truth_(truth), outputs_(outputs) {}

  Verdict run() {
    verdict_.numerics = truth_.numerics.name;
    if (!shapes() || !writes() || !kinds("o", truth_.forward.o, outputs_.o, truth_.o_bound)) return verdict_;
    if (outputs_.lse && !kinds("lse", truth_.forward.lse, *outputs_.lse, truth_.lse_bound)) return verdict_;
    worst_case("o", truth_.forward.o, outputs_.o, truth_.o_bound);
    if (outputs_.lse) worst_case("lse", truth_.forward.lse, *outputs_.lse, truth_.lse_bound);
    if (!truth_.o_variance.values.empty()) statistical_o();
    if (outputs_.lse && !truth_.lse_variance.values.empty()) statistical_lse();
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
    const auto same = [&](std::string_view channel, const Tensor& want, const Tensor& got) {
      if (want.extents == got.extents && want.values.size() == got.values.size()) return true;
      const auto& w = want.extents;
      const auto& g = got.extents;
      return fail(Status::wrong_shape, "shape", channel,
                  fmt::format("{} has the shape [{}, {}, {}, {}], not [{}, {}, {}, {}]", channel, g[0], g[1], g[2],
                              g[3], w[0], w[1], w[2], w[3]));
    };
    return same("o", truth_.forward.o, outputs_.o) && (!outputs_.lse || same("lse", truth_.forward.lse, *outputs_.lse));
  }

  bool writes() {
    if (outputs_.out_of_bounds > 0)
      return fail(Status::out_of_bounds, "out of bounds", "",
                  fmt::format("{} bytes outside the logical domain were changed", outputs_.out_of_bounds));
    if (outputs_.unwritten_o > 0)
      return fail(Status::unwritten, "unwritten", "o",
                  fmt::format("{} elements of o were never written", outputs_.unwritten_o));
    if (outputs_.unwritten_lse > 0)
      return fail(Status::unwritten, "unwritten", "lse",
                  fmt::format("{} elements of lse were never written", outputs_.unwritten_lse));
    return true;
  }

  bool kinds(std::string_view channel, const Tensor& truth, const Tensor& got, const Tensor& bound) {
    const double largest = channel == "o" ? largest_finite(output_dtype(problem_.dtype)) : largest_finite(Dtype::fp32);
    std::int64_t wrong = 0, first = 0;
    const auto count = static_cast<std::int64_t>(truth.values.size());
    for (std::int64_t n = 0; n < count; ++n)
      if (!same_kind(truth.values[n], got.values[n], bound.values[n], largest, channel == "o" || truth.values[n] > 0) &&
          wrong++ == 0)
        first = n;
    if (wrong == 0) return true;
    locate(channel, truth, got, bound, position(truth, first));
    return fail(Status::wrong_values, "nan", channel,
                fmt::format("{} is {} where the truth is {} ({} elements like it); keys {}", name(channel),
                            verdict_.value, verdict_.expected, wrong, verdict_.visible_keys));
  }

  void worst_case(std::string_view channel, const Tensor& truth, const Tensor& got, const Tensor& bound) {
    double largest = -1;
    std::size_t where = 0;
    RuleFinding finding{"worst case", channel};
    const auto row = static_cast<std::size_t>(truth.extents[3]);
    for (std::size_t first = 0; first < truth.values.size(); first += row) {
      double row_largest = -1;
      for (std::size_t n = first; n < first + row; ++n) {
        const double t = truth.values[n];
        if (!std::isfinite(t) || !std::isfinite(got.values[n])) continue;
        const double ratio = over(std::abs(got.values[n] - t), bound.values[n]);
        if (ratio > row_largest) row_largest = ratio;
        if (ratio > largest) largest = ratio, where = n;
      }
      finding.judged += row_largest >= 0;
      finding.over += row_largest > 1;
    }
    if (largest >= 0) {
      worst_.offer(largest, "worst case", channel, position(truth, static_cast<std::int64_t>(where)),
                   bound.values[where]);
      finding.error_over_budget = largest;
    }
    findings_.push_back(finding);
  }

  void statistical_o() {
    const auto [batch, seqlen, heads, dim] = truth_.forward.o.extents;
    if (dim < fewest_columns) return;
    const std::int64_t blocks = (seqlen + rows_per_block - 1) / rows_per_block;
    const auto num_rows = static_cast<double>(batch * seqlen * heads);
    RuleFinding rows{"statistical row", "o"}, row_blocks{"statistical block", "o"};
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t block = 0; block < blocks; ++block) {
          double block_sum = 0, block_count = 0, block_independent = 0, largest = -1;
          std::array<std::int64_t, 4> where{};
          for (std::int64_t i = block * rows_per_block; i < std::min(seqlen, (block + 1) * rows_per_block); ++i) {
            double row_sum = 0, row_count = 0, row_largest = -1;
            std::int64_t column = 0;
            for (std::int64_t c = 0; c < dim; ++c) {
              const std::int64_t n = truth_.forward.o.index(b, i, h, c);
              const double variance = truth_.o_variance.values[n];
              const double error = outputs_.o.values[n] - truth_.forward.o.values[n];
              if (!(variance > 0) || !std::isfinite(error)) continue;
              const double square = error * error / variance;
              row_sum += square;
              row_count += 1;
              if (square > row_largest) row_largest = square, column = c;
            }
            if (row_count < fewest_columns) continue;
            const double independent = independent_columns(dim, key_ranges(problem_, b, i).size());
            const double R = std::sqrt(row_sum / row_count);
            const double limit = std::sqrt(std::max(smallest_row_limit, mean_square_limit(independent, num_rows)));
            const std::int64_t at = truth_.forward.o.index(b, i, h, column);
            see(rows, R / limit);
            worst_.offer(R / limit, "statistical row", "o", {b, i, h, column},
                         limit * std::sqrt(truth_.o_variance.values[at]));
            block_sum += row_sum;
            block_count += row_count;
            block_independent += independent;
            if (row_largest > largest) largest = row_largest, where = {b, i, h, column};
          }
          if (block_count == 0) continue;
          const auto num_blocks = static_cast<double>(batch * heads * blocks);
          const double limit = std::max(smallest_block_limit, mean_square_limit(block_independent, num_blocks));
          const std::int64_t at = truth_.forward.o.index(where[0], where[1], where[2], where[3]);
          const double G = std::sqrt(block_sum / block_count / limit);
          see(row_blocks, G);
          worst_.offer(G, "statistical block", "o", where, std::sqrt(limit * truth_.o_variance.values[at]));
        }
    findings_.insert(findings_.end(), {rows, row_blocks});
  }

  void statistical_lse() {
    const double limit = deviation_limit(static_cast<double>(truth_.forward.lse.values.size()));
    RuleFinding finding{"statistical lse", "lse"};
    for (std::size_t n = 0; n < truth_.forward.lse.values.size(); ++n) {
      const double variance = truth_.lse_variance.values[n];
      const double error = outputs_.lse->values[n] - truth_.forward.lse.values[n];
      if (!(variance > 0) || !std::isfinite(error)) continue;
      const double z = std::abs(error) / std::sqrt(variance) / limit;
      see(finding, z);
      worst_.offer(z, "statistical lse", "lse", position(truth_.forward.lse, static_cast<std::int64_t>(n)),
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
      verdict_.rule = "nan";
      verdict_.detail = "passed: nothing finite to compare";
      return;
    }
    const bool o = worst_.channel == "o";
    locate(worst_.channel, o ? truth_.forward.o : truth_.forward.lse, o ? outputs_.o : *outputs_.lse,
           o ? truth_.o_bound : truth_.lse_bound, worst_.element);
    verdict_.rule = std::string(worst_.rule);
    verdict_.channel = std::string(worst_.channel);
    verdict_.bound = worst_.bound;
    verdict_.error_over_budget = worst_.ratio;
    verdict_.status = worst_.ratio > 1 ? Status::wrong_values : Status::passed;
    verdict_.detail = fmt::format("{}: {} is {:.9g}, truth {:.9g}, {:.3g} of the {} budget ({}); keys {}",
                                  to_string(verdict_.status), name(worst_.channel), verdict_.value, verdict_.expected,
                                  worst_.ratio, worst_.rule, verdict_.numerics, verdict_.visible_keys);
  }

  static std::array<std::int64_t, 4> position(const Tensor& t, std::int64_t n) {
    const auto& e = t.extents;
    return {n / e[3] / e[2] / e[1], n / e[3] / e[2] % e[1], n / e[3] % e[2], n % e[3]};
  }

  void locate(std::string_view channel, const Tensor& truth, const Tensor& got, const Tensor& bound,
              std::array<std::int64_t, 4> at) {
    const auto n = static_cast<std::size_t>(truth.index(at[0], at[1], at[2], at[3]));
    verdict_.element = at;
    verdict_.value = got.values[n];
    verdict_.expected = truth.values[n];
    verdict_.bound = bound.values[n];
    verdict_.visible_keys = visible_keys(problem_, at[0], channel == "o" ? at[1] : at[2]);
  }

  std::string name(std::string_view channel) const {
    const auto& e = verdict_.element;
    return channel == "o" ? fmt::format("o[b={}, i={}, h={}, d={}]", e[0], e[1], e[2], e[3])
                          : fmt::format("lse[b={}, h={}, i={}]", e[0], e[1], e[2]);
  }

  const Problem& problem_;
  const Truth& truth_;
  const Outputs& outputs_;
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
