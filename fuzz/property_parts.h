// Helpers of the properties: the worst element of a comparison, and what no value can excuse.
#pragma once
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "attest/gpu/forward_buffers.h"
#include "attest/reference/attends.h"
#include "attest/reference/compare.h"

namespace attest {

/// Sees elements one by one and keeps the one that is worst for its bound.
class Worst {
 public:
  explicit Worst(std::string rule, const Numerics& numerics) {
    verdict_.rule = std::move(rule);
    verdict_.numerics = numerics.name;
  }

  void see(const char* channel, const std::array<std::int64_t, 4>& element, double value, double expected,
           double bound) {
    const double ratio = ratio_of(value, expected, bound);
    if (ratio <= verdict_.error_over_budget) return;
    verdict_.error_over_budget = ratio;
    verdict_.channel = channel;
    verdict_.element = element;
    verdict_.value = value;
    verdict_.expected = expected;
    verdict_.bound = bound;
  }

  Verdict verdict() {
    verdict_.status = verdict_.error_over_budget > 1 ? Status::wrong_values : Status::passed;
    return verdict_;
  }

 private:
  /// Error over bound; equal values (the same infinity, both NaN) are no error whatever the bound.
  static double ratio_of(double value, double expected, double bound) {
    if (value == expected || (std::isnan(value) && std::isnan(expected))) return 0;
    const double error = std::abs(value - expected);
    if (!std::isfinite(error) || std::isnan(bound) || bound == 0) return std::numeric_limits<double>::infinity();
    return error / bound;
  }

  Verdict verdict_;
};

/// Unwritten elements and changed bytes, which a property's own comparison cannot see.
std::optional<Verdict> memory_flaw(const Outputs& outputs);

// The properties, by the name they have in the table.
Verdict zero_q(Trial& trial);
Verdict one_v(Trial& trial);
Verdict one_hot_v(Trial& trial);
Verdict shift(Trial& trial);
Verdict gqa(Trial& trial);
Verdict batch(Trial& trial);
Verdict key_permutation(Trial& trial);
Verdict layout(Trial& trial);
Verdict packing(Trial& trial);
Verdict rewriting(Trial& trial);
Verdict documents(Trial& trial);
Verdict splits(Trial& trial);
Verdict descale(Trial& trial);
Verdict repeat(Trial& trial);
Verdict accumulator(Trial& trial);
Verdict weights(Trial& trial);
Verdict lookup(Trial& trial);
Verdict mask(Trial& trial);
Verdict counts(Trial& trial);

/// Whether a score is softmax_scale q.k and nothing else, and inputs have the 8 bits and more that codes need.
inline bool has_plain_scores(const Problem& p) {
  return p.softcap == 0 && !p.alibi && !p.sink && p.bias == Bias::none && !is_fp8(p.dtype);
}

/// How far apart the weights of splits may be, relative to them, for a row of `keys` keys and that LSE: each split's
/// LSE (its own logarithm, three roundings of its maximum), the difference, the exponential, and their sum. 0 for one
/// split.
double split_error(const Numerics& numerics, const Case& c, std::int64_t keys, double lse);

// To which cases some of them apply.
bool can_rewrite(const Case& c);
bool has_documents(const Case& c);
bool has_descale(const Case& c);
bool has_accumulator(const Case& c);
bool has_weights(const Case& c);
bool can_look_up(const Case& c);

/// Random columns of `mask`: that a row's digits and its LSE agree leaves only weights that are no integers to them.
inline constexpr int mask_property_checks = 8;

}  // namespace attest
