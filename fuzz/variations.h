// Variations of a case, and holding one run's answer against another's.
#pragma once
#include <string>

#include "attest/fuzz/trial.h"

namespace attest {

/// A case with inputs of its own.
struct Variation {
  Case c;
  Inputs inputs;
};

/// Where the answer of a variation stands in the case's own: its row i of batch entry b is row first_query + i of batch
/// entry first_member + b. What is expected of it is O times `o_factor`.
struct Place {
  std::int64_t first_member = 0, first_query = 0;
  double o_factor = 1;
};

/// What is compared how.
struct Relation {
  std::string rule;
  bool bitwise = false;       // else within the sum of both budgets
  bool other_budget = false;  // the variation's scores are not the case's: its budget is computed
  bool skip_empty = false;    // rows without a key may differ
  Place place{};
  // Whether gradients follow too: of the batch entries compared, or all; `group` heads of the variation's dK and dV are
  // one of the case's. Bit for bit where O is and the case is deterministic.
  enum class Gradients { none, of_members, all } gradients = Gradients::none;
  std::int64_t group = 1;
};

/// Batch entry b alone, not packed.
Variation member_alone(const Case& c, const Inputs& inputs, std::int64_t b);
/// Positions [begin, end) of batch entry b alone, for both sides, as a problem without documents.
Variation positions_alone(const Case& c, const Inputs& inputs, std::int64_t b, std::int64_t begin, std::int64_t end);

/// The kernel's answer to the variation against its answer to the case. Passed where it refuses the variation.
Verdict same_answer(Trial& trial, const Relation& relation, const Variation& variation);
/// Both of them variations.
Verdict same_answer(Trial& trial, const Relation& relation, const Variation& base, const Variation& variation);

}  // namespace attest
