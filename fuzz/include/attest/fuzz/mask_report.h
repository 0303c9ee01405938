// A mask as a kernel was measured to see it beside attends(): counts, sentences, JSON and a picture.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attest/fuzz/mask_recovery.h"

namespace attest {

/// Pairs of a query and a key by how they differ. `extra` counts whatever the weight of what should not be seen is.
struct MaskCounts {
  std::int64_t missing = 0, extra = 0, doubled = 0, reweighted = 0;  // reweighted: no integer, or seen 3 times or more
  std::int64_t pairs() const { return missing + extra + doubled + reweighted; }
};

/// One row that differs: the keys as ranges, "3, 70-72".
struct MaskRowDifference {
  std::int64_t b = 0, h = 0, i = 0;
  std::string missing, extra, doubled, reweighted;
  std::string note;  // what else is wrong with the row; empty: nothing
};

struct MaskComparison {
  MaskCounts counts;
  std::int64_t rows = 0, wrong_rows = 0, seen = 0, should_see = 0;  // the last two in pairs
  std::int64_t unreadable_rows = 0, foreign_rows = 0, hidden_rows = 0,
               lse_rows = 0;                     // lse_rows is told, and is no fault of the mask
  std::int64_t fewest_checks = 0;                // decisive random columns of the row that has the fewest
  std::int64_t worst_batch = 0, worst_head = 0;  // the entry with the most wrong pairs and rows
  std::vector<MaskRowDifference> first;          // the first rows that differ, eight at most, of the worst entry
  std::int64_t first_key = -1;                   // of the first row: its first wrong key; -1: the row as a whole
  bool same() const { return wrong_rows == 0; }
};

MaskComparison compare_mask(const Problem& problem, const RecoveredMask& mask);

/// One sentence: what the kernel sees against what it should.
std::string mask_sentence(const std::string& kernel, const MaskComparison& comparison);
/// "query 3 of batch 0, head 1: missing 5; extra 9-12".
std::string to_string(const MaskRowDifference& difference);
/// {launches, keys_per_column, rows, wrong_rows, seen, should_see, missing, extra, doubled, reweighted,
/// unreadable_rows, foreign_rows, hidden_rows, lse_rows, fewest_checks, first: null or the first row that differs}.
nlohmann::ordered_json to_json(const RecoveredMask& mask, const MaskComparison& comparison);
std::string to_text(const std::string& kernel, const RecoveredMask& mask, const MaskComparison& comparison);

/// The worst (batch entry, head): what was measured, left, beside attends(), right. Blocks of pairs where there are
/// many; a block with a difference shows it. `grid` is the distance of the faint lines in keys and queries.
std::string mask_svg(const std::string& kernel, const Case& c, const RecoveredMask& mask,
                     const MaskComparison& comparison, std::int64_t grid = 64);

}  // namespace attest
