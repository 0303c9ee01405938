#include "attest/fuzz/mask_recovery.h"

#include <fmt/format.h>

#include "attest/problem/error.h"
#include "mask_code.h"
#include "mask_reader.h"

namespace attest {
namespace {

void check_range(const char* field, const std::optional<std::int64_t>& value, std::int64_t count) {
  if (value && (*value < 0 || *value >= count))
    throw InvalidInput(field, fmt::format("{}", *value), fmt::format("is outside 0 to {}", count - 1));
}

}  // namespace

double RecoveredMask::weight(std::int64_t row, std::int64_t j) const {
  const std::int64_t at = row * seqlen_k + j;
  const std::uint8_t w = weights[static_cast<std::size_t>(at)];
  return w == fraction ? fractions.at(at) : w;
}

Case mask_case(const Case& c) {
  Case plain = c;
  plain.inputs = Distribution::zero_q;
  plain.problem.softcap = 0;
  plain.problem.alibi = plain.problem.sink = false;
  plain.problem.bias = Bias::none;
  plain.backward = false;
  return plain;
}

std::int64_t mask_launches(const Case& c, bool offers_lse, int checks) {
  if (c.problem.seqlen_q == 0) return 0;
  const auto launches = [&](std::int64_t columns) { return (columns + c.problem.headdim_v - 1) / c.problem.headdim_v; };
  const std::int64_t origins = std::int64_t{2} * origin_bits(c.problem),
                     keys = MaskCode(c.problem, flash_numerics(c.problem.dtype)).keys_per_column;
  if (!offers_lse) return launches(origins) + 1 + launches(c.problem.seqlen_k);
  return launches(origins + (c.problem.seqlen_k + keys - 1) / keys + checks);
}

void validate_mask(const Problem& p, const MaskOptions& options) {
  check_range("mask_batch", options.batch, p.batch);
  check_range("mask_head", options.head, p.nheads);
  if (options.checks < 1 || options.checks > num_mask_signs)
    throw InvalidInput("checks", fmt::format("{}", options.checks), fmt::format("is outside 1 to {}", num_mask_signs));
  const std::int64_t entries = (options.batch ? 1 : p.batch) * (options.head ? 1 : p.nheads);
  const __int128 pairs = static_cast<__int128>(entries) * p.seqlen_q * p.seqlen_k;
  if (pairs > max_mask_pairs)
    throw InvalidInput(
        "mask", fmt::format("{} x {} x {} pairs of a query and a key", entries, p.seqlen_q, p.seqlen_k),
        fmt::format("are more than {}; choose --mask-batch and --mask-head, or shorter sequences", max_mask_pairs));
}

RecoveredMask recover_mask(Trial& trial, const MaskOptions& options) {
  validate_mask(trial.problem(), options);
  if (const auto why = trial.kernel().unsupported(mask_case(trial.the_case())))
    throw InvalidInput("mask", trial.kernel().capability().name,
                       fmt::format("does not take the case's mask: {}", *why));
  return MaskReader(trial, options).read();
}

RecoveredMask recover_mask(Kernel& kernel, const Case& c, const MaskOptions& options) {
  ForwardBuffers buffers;
  Trial trial(kernel, buffers, c);
  return recover_mask(trial, options);
}

}  // namespace attest
