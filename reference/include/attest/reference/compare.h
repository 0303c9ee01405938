// Judges what a kernel wrote against the truth.
#pragma once
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attest/problem/case.h"
#include "attest/reference/forward.h"

namespace attest {

enum class Status : std::uint8_t {
  passed,
  wrong_values,
  wrong_shape,
  unwritten,
  out_of_bounds,
  hazard,
  crashed,
  hung,
  unsupported
};
std::string_view to_string(Status status);

/// What a kernel wrote, gathered from wherever its tensors lay.
struct Outputs {
  Tensor o;                      // [batch, seqlen_q, nheads, headdim_v]
  std::optional<Tensor> lse;     // [batch, nheads, seqlen_q, 1], base e; none if the kernel offers none
  std::int64_t unwritten_o = 0;  // elements that still hold the pattern they started with
  std::int64_t unwritten_lse = 0;
  std::int64_t out_of_bounds = 0;                     // bytes changed outside the logical domain
  std::optional<Gradients> gradients{};               // none if the backward was not run
  std::array<std::int64_t, 5> unwritten_gradients{};  // of dq, dk, dv, dsink, dbias
};

/// The judgement on one run. `channel`, `element`, `value` and the rest describe the worst offence.
struct Verdict {
  Status status = Status::passed;
  std::string
      rule;  // "worst case", "statistical row", "statistical block", "nan", ... the rule that failed or came nearest
  std::string channel;                    // "o", "lse", "dq", "dk", "dv", "dsink" or "dbias"
  std::array<std::int64_t, 4> element{};  // in the channel's own extents
  double value = 0, expected = 0, bound = 0;
  double error_over_budget = 0;  // the largest seen over every rule; above 1 fails
  std::string numerics;          // the name of the Numerics the budget came from
  std::string visible_keys;      // of the worst element's row, as ranges: "0-63, 70"; of dk and dv the queries
  std::string detail;            // one line for a person
};

/// What one of the rules on bounds saw by itself: compare() stops at no rule and names the worst; this keeps them
/// apart.
struct RuleFinding {
  std::string_view rule, channel;  // "worst case" of "o" and "lse"; "statistical row", "statistical block" of "o", ...
  double error_over_budget = 0;    // the largest
  std::int64_t judged = 0, over = 0;  // rows (blocks of rows for "statistical block") it judged, and found over budget
};

/// In this order: shape, out-of-domain writes, unwritten elements, NaN and Inf masks, then the bounds, each in every
/// channel that `outputs` has. Gradients need a truth that has been through add_gradients(); queries and keys past a
/// batch entry's lengths are not judged.
/// `findings`, if given, receives every rule on bounds that was reached; none where an earlier check failed.
Verdict compare(const Problem& problem, const Truth& truth, const Outputs& outputs,
                std::vector<RuleFinding>* findings = nullptr);

nlohmann::ordered_json to_json(const Verdict& verdict);

/// An error over its budget or bound, in three digits and as many more as tell it from 1, the limit: "0.47", "1.003".
std::string ratio_text(double error_over_budget);

}  // namespace attest
