#include "attest/fuzz/properties.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attest/fuzz/counts_property.h"
#include "attest/fuzz/in_flight.h"
#include "attest/fuzz/mask_recovery.h"
#include "attest/problem/error.h"
#include "attest/problem/splitmix64.h"
#include "property_parts.h"

namespace attest {
namespace {

Verdict hazard(const std::vector<std::string>& hazards) {
  Verdict verdict;
  if (hazards.empty()) return verdict;
  verdict.status = Status::hazard;
  verdict.rule = "ordering";
  verdict.error_over_budget = static_cast<double>(1 + hazards.size());
  verdict.detail = fmt::format("{}", fmt::join(hazards, "; "));
  return verdict;
}

Verdict hazards(Trial& trial) { return hazard(trial.run().report.hazards); }

Verdict reference(Trial& trial) { return compare(trial.problem(), trial.truth(), trial.run().outputs); }

bool always(const Case&) { return true; }
bool has_rows(const Case& c) { return c.problem.seqlen_q > 0; }
// Whether all scores are 0 where Q is, and a row's weights those of its keys alone.
bool counts_keys(const Case& c) {
  const Problem& p = c.problem;
  return has_rows(c) && !p.alibi && !p.sink && p.bias == Bias::none;
}
bool has_no_sink(const Case& c) { return has_rows(c) && !c.problem.sink; }
bool can_shift(const Case& c) {
  const double scale = effective_softmax_scale(c.problem);
  return has_no_sink(c) && c.inputs != Distribution::non_finite && c.problem.softcap == 0 && c.problem.seqlen_k > 0 &&
         c.problem.headdim >= 2 && std::abs(scale) >= 0x1p-10 && std::abs(scale) <= 16;
}
bool shares_heads(const Case& c) { return c.problem.nheads_k < c.problem.nheads && has_rows(c); }
bool has_members(const Case& c) { return c.problem.batch > 1 && has_rows(c); }
// Which keys change places hangs on nothing but which rows see them.
bool can_permute(const Case& c) { return c.problem.seqlen_k > 1 && has_rows(c) && !c.problem.alibi; }
bool has_keys(const Case& c) { return c.problem.seqlen_k > 0 && has_rows(c); }

bool mask_is_cheap(const Case& c) {
  const Problem& p = c.problem;
  return has_rows(c) && p.batch * p.nheads * p.seqlen_q * p.seqlen_k <= std::int64_t{1} << 20 &&
         mask_launches(c, true, mask_property_checks) <= 3;
}

constexpr Property table[] = {
    {"hazards", 64, always, hazards},
    {"reference", 64, always, reference},
    {"zero_q", 16, counts_keys, zero_q},
    {"one_v", 8, has_no_sink, one_v},
    {"one_hot_v", 16, counts_keys, one_hot_v},
    {"shift", 6, can_shift, shift},
    {"gqa", 16, shares_heads, gqa},
    {"batch", 16, has_members, batch},
    {"key_permutation", 6, can_permute, key_permutation},
    {"layout", 8, has_rows, layout},
    {"packing", 8, has_keys, packing},
    {"rewriting", 10, can_rewrite, rewriting},
    {"documents", 24, has_documents, documents},
    {"splits", 8, has_keys, splits},
    {"descale", 16, has_descale, descale},
    {"repeat", 6, has_rows, repeat},
    {"accumulator", 8, has_accumulator, accumulator},
    {"weights", 8, has_weights, weights},
    {"lookup", 8, can_look_up, lookup},
    {"mask", 5, mask_is_cheap, mask},
    {"counts", 4, counts_are_exact, counts},
};

}  // namespace

std::span<const Property> properties() { return table; }

const Property& property_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Property& property : table) {
    if (property.name == name) return property;
    names.push_back(property.name);
  }
  throw InvalidInput("property", fmt::format("'{}'", name), fmt::format("is none of {}", fmt::join(names, ", ")));
}

Verdict judge(const Property& property, Trial& trial) {
  name_in_flight(property.name);
  try {
    Verdict verdict = property.run(trial);
    const std::vector<std::string> found = trial.take_hazards();
    return verdict.status == Status::passed && !found.empty() ? hazard(found) : verdict;
  } catch (const KernelThrew& error) {
    trial.take_hazards();
    return thrown(error);
  }
}

Verdict thrown(const KernelThrew& error) {
  Verdict verdict;
  verdict.status = Status::crashed;
  verdict.rule = "exception";
  verdict.error_over_budget = std::numeric_limits<double>::infinity();
  verdict.detail = error.what();
  return verdict;
}

std::vector<const Property*> properties_for(std::uint64_t seed, std::uint64_t k, const Case& c) {
  std::vector<const Property*> chosen;
  std::uint64_t bits = scramble(mix(seed) ^ k);
  for (const Property& property : table) {
    bits = mix(bits);
    if (static_cast<int>(bits % 64) < property.share && property.applies(c)) chosen.push_back(&property);
  }
  return chosen;
}

std::optional<Verdict> memory_flaw(const Outputs& outputs) {
  Verdict verdict;
  std::int64_t unwritten = outputs.unwritten_o + outputs.unwritten_lse;
  for (const std::int64_t count : outputs.unwritten_gradients) unwritten += count;
  if (outputs.out_of_bounds > 0) {
    verdict.status = Status::out_of_bounds;
    verdict.error_over_budget = static_cast<double>(1 + outputs.out_of_bounds);
    verdict.detail = fmt::format("{} bytes changed outside the logical domain", outputs.out_of_bounds);
  } else if (unwritten > 0) {
    verdict.status = Status::unwritten;
    verdict.channel = outputs.unwritten_o > 0 ? "o" : outputs.unwritten_lse > 0 ? "lse" : "gradients";
    verdict.error_over_budget = static_cast<double>(1 + unwritten);
    verdict.detail = fmt::format("{} elements of O, {} of LSE and {} of the gradients not written", outputs.unwritten_o,
                                 outputs.unwritten_lse, unwritten - outputs.unwritten_o - outputs.unwritten_lse);
  } else {
    return std::nullopt;
  }
  verdict.rule = "memory";
  return verdict;
}

}  // namespace attest
