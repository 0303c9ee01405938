// Which keys each row of a kernel really sees, read from O alone. Q = 0 makes every exponential 1, so that
// O[c] = sum_j w_j V[j, c] / L with w_j how often the row sees key j and L the denominator, exp(LSE). What V holds
// turns a column into a measurement of many w_j at once (docs/fuzzing.md, "Reading the mask").
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "attest/fuzz/trial.h"
#include "attest/reference/compare.h"

namespace attest {

struct MaskOptions {
  std::optional<std::int64_t> batch, head;  // only this batch entry, only this query head
  /// Weigh key by key what is no set. Without it such a row is `unread`, and no launch follows the first ones.
  bool refine = true;
  int checks = 32;  // how many random columns every row is held to, 1 to 32
};

/// The most (query, key) pairs that are read at once.
inline constexpr std::int64_t max_mask_pairs = std::int64_t{1} << 26;

/// How the reading of one row went.
struct MaskRow {
  enum class State : std::uint8_t {
    read,
    not_finite,    // O has NaN or Inf although every V is finite
    dead_columns,  // some columns of O do not carry V: nothing can be read from them
    foreign,       // it also sees values of another batch entry or key head
    unread,        // it is no set of keys, and was not to be weighed
    absent,        // past the length of its batch entry
  };
  State state = State::read;
  double hidden = 0;           // weight in the denominator beyond the keys that O shows; negative: O shows more
  bool lse_disagrees = false;  // exp(LSE) is no sum of these weights; they are relative to the row's most frequent one
  std::int64_t checks = 0;     // random checks that could have told another set of keys from this one
  friend bool operator==(const MaskRow&, const MaskRow&) = default;
};

struct RecoveredMask {
  std::int64_t first_batch = 0, batches = 0, first_head = 0, heads = 0, seqlen_q = 0, seqlen_k = 0;
  /// How often a row sees a key, [batches, heads, seqlen_q, seqlen_k]: 0, 1, 2, ..., or one of these.
  static constexpr std::uint8_t fraction = 254, unknown = 255;
  std::vector<std::uint8_t> weights;
  std::map<std::int64_t, double> fractions;  // by index into weights: the weights that are no integer below 254
  std::vector<MaskRow> rows;                 // [batches, heads, seqlen_q]
  std::int64_t launches = 0;
  std::int64_t keys_per_column = 0;  // of the first launches
  std::optional<Verdict> memory;     // the first that a launch left unwritten or wrote outside

  std::int64_t row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return ((b - first_batch) * heads + h - first_head) * seqlen_q + i;
  }
  double weight(std::int64_t row, std::int64_t j) const;
};

/// How many launches a right kernel is read in:
///   ceil((ceil(seqlen_k / k) + checks + 2 ceil(log2(batch * nheads_k))) / headdim_v),
///   k = 7 for an output in bf16, 9 in fp16, 16 in fp32 (fewer where fp16 has no room: seqlen_k above 2^20).
/// Without an LSE each key takes a column: ceil(seqlen_k / headdim_v) + 1 + ceil(2 ceil(log2(..)) / headdim_v).
/// With a kernel that rounds O otherwise than flash_numerics(), k is another.
std::int64_t mask_launches(const Case& c, bool offers_lse, int checks = 32);

/// The case that is run, but for what V holds: its masks, lengths, layout and splits, without what weighs scores.
Case mask_case(const Case& c);

/// Throws InvalidInput naming mask_batch, mask_head or mask: an entry that is not there, more than max_mask_pairs
/// pairs.
void validate_mask(const Problem& problem, const MaskOptions& options);

/// The case's masks, layout and splits are kept; softcap, ALiBi, bias and sink are switched off, because they are no
/// part of who sees whom and would weigh the keys. Throws as validate_mask() does, and KernelThrew.
RecoveredMask recover_mask(Trial& trial, const MaskOptions& options = {});
RecoveredMask recover_mask(Kernel& kernel, const Case& c, const MaskOptions& options = {});

}  // namespace attest
