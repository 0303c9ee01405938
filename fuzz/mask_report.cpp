#include "attest/fuzz/mask_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attest/reference/attends.h"
#include "mask_pair.h"

namespace attest {
namespace {

constexpr std::size_t most_rows = 8, most_ranges = 12;

// Keys that come one after the other, as ranges.
class Ranges {
 public:
  void add(std::int64_t key) {
    if (count_ > 0 && key == last_ + 1) {
      last_ = key;
      return;
    }
    flush();
    first_ = last_ = key;
    ++count_;
  }
  std::string text() {
    flush();
    if (count_ > most_ranges) text_ += fmt::format(" and {} more ranges", count_ - most_ranges);
    return text_;
  }

 private:
  void flush() {
    if (count_ == 0 || count_ > most_ranges) return;
    if (count_ > 1) text_ += ", ";
    text_ += first_ == last_ ? fmt::format("{}", first_) : fmt::format("{}-{}", first_, last_);
  }

  std::int64_t first_ = 0, last_ = 0;
  std::size_t count_ = 0;
  std::string text_;
};

std::string note_on(const MaskRow& row) {
  switch (row.state) {
    case MaskRow::State::not_finite:
      return "O is not finite although every V is";
    case MaskRow::State::dead_columns:
      return "some columns of O do not carry V";
    case MaskRow::State::foreign:
      return "sees values of another batch entry or key head";
    case MaskRow::State::unread:
      return "sees no set of keys: some are seen more than once, with another weight, or outside the sequence";
    case MaskRow::State::read:
    case MaskRow::State::absent:
      break;
  }
  if (row.hidden > 0) return fmt::format("its denominator holds {:.6g} more than the keys that O shows", row.hidden);
  if (row.hidden < 0) return fmt::format("its denominator holds {:.6g} less than the keys that O shows", -row.hidden);
  return "";
}

// The differences of one row, for people.
MaskRowDifference describe_row(const Problem& p, const RecoveredMask& mask, std::int64_t b, std::int64_t h,
                               std::int64_t i) {
  MaskRowDifference difference{b, h, i, "", "", "", "", ""};
  const std::int64_t r = mask.row(b, h, i);
  difference.note = note_on(mask.rows[static_cast<std::size_t>(r)]);
  Ranges missing, extra, doubled, reweighted;
  for (std::int64_t j = 0; j < mask.seqlen_k; ++j) {
    const PairState state = pair_state(mask, r, j, attends(p, b, i, j));
    if (state == PairState::missing) missing.add(j);
    if (state == PairState::extra) extra.add(j);
    if (state == PairState::doubled) doubled.add(j);
    if (state == PairState::reweighted) reweighted.add(j);
  }
  difference.missing = missing.text();
  difference.extra = extra.text();
  difference.doubled = doubled.text();
  difference.reweighted = reweighted.text();
  return difference;
}

std::string counted(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

PairState pair_state(const RecoveredMask& mask, std::int64_t row, std::int64_t j, bool truth) {
  const std::uint8_t w = mask.weights[static_cast<std::size_t>(row * mask.seqlen_k + j)];
  if (w == RecoveredMask::unknown) return PairState::unknown;
  if (!truth) return w == 0 ? PairState::unseen : PairState::extra;
  if (w <= 1) return w == 0 ? PairState::missing : PairState::seen;
  return w == 2 ? PairState::doubled : PairState::reweighted;
}

MaskComparison compare_mask(const Problem& p, const RecoveredMask& mask) {
  MaskComparison result;
  std::int64_t most = -1, fewest = num_checks_unknown;
  for (std::int64_t b = mask.first_batch; b < mask.first_batch + mask.batches; ++b)
    for (std::int64_t h = mask.first_head; h < mask.first_head + mask.heads; ++h) {
      std::int64_t wrong = 0;
      std::vector<std::int64_t> rows;
      for (std::int64_t i = 0; i < mask.seqlen_q; ++i) {
        const std::int64_t r = mask.row(b, h, i);
        const MaskRow& row = mask.rows[static_cast<std::size_t>(r)];
        if (row.state == MaskRow::State::absent) continue;
        MaskCounts counts;
        std::int64_t seen = 0;
        for (std::int64_t j = 0; j < mask.seqlen_k; ++j) {
          const bool truth = attends(p, b, i, j);
          const PairState state = pair_state(mask, r, j, truth);
          result.should_see += truth;
          seen += state == PairState::seen;
          counts.missing += state == PairState::missing;
          counts.extra += state == PairState::extra;
          counts.doubled += state == PairState::doubled;
          counts.reweighted += state == PairState::reweighted;
        }
        ++result.rows;
        result.seen += seen + counts.extra + counts.doubled + counts.reweighted;
        result.counts.missing += counts.missing;
        result.counts.extra += counts.extra;
        result.counts.doubled += counts.doubled;
        result.counts.reweighted += counts.reweighted;
        result.foreign_rows += row.state == MaskRow::State::foreign;
        result.unreadable_rows += row.state != MaskRow::State::read && row.state != MaskRow::State::foreign;
        result.hidden_rows += row.hidden != 0;
        result.lse_rows += row.lse_disagrees;
        if (seen > 0 && row.state == MaskRow::State::read) fewest = std::min(fewest, row.checks);
        if (counts.pairs() == 0 && row.state == MaskRow::State::read && row.hidden == 0) continue;
        ++result.wrong_rows;
        wrong += counts.pairs() + 1;
        if (rows.size() < most_rows) rows.push_back(i);
      }
      if (wrong <= most) continue;
      most = wrong;
      result.worst_batch = b;
      result.worst_head = h;
      result.first.clear();
      for (const std::int64_t i : rows) result.first.push_back(describe_row(p, mask, b, h, i));
    }
  result.fewest_checks = fewest == num_checks_unknown ? 0 : fewest;
  if (result.first.empty()) return result;
  const MaskRowDifference& first = result.first.front();
  for (std::int64_t j = mask.seqlen_k - 1; j >= 0; --j)
    if (is_wrong(pair_state(mask, mask.row(first.b, first.h, first.i), j, attends(p, first.b, first.i, j))))
      result.first_key = j;
  return result;
}

std::string mask_sentence(const std::string& kernel, const MaskComparison& c) {
  if (c.same())
    return fmt::format("{} sees exactly the keys it should: {} in {}.", kernel, counted(c.seen, "pair"),
                       counted(c.rows, "row"));
  std::vector<std::string> faults;
  if (c.counts.missing > 0)
    faults.push_back(fmt::format("misses {} of the {} pairs that it should see", c.counts.missing, c.should_see));
  if (c.counts.extra > 0) faults.push_back(fmt::format("sees {} that it should not", counted(c.counts.extra, "pair")));
  if (c.counts.doubled > 0) faults.push_back(fmt::format("sees {} twice", counted(c.counts.doubled, "pair")));
  if (c.counts.reweighted > 0) faults.push_back(fmt::format("weighs {} wrongly", counted(c.counts.reweighted, "pair")));
  if (c.foreign_rows > 0)
    faults.push_back(fmt::format("sees another head's or batch entry's keys in {}", counted(c.foreign_rows, "row")));
  if (c.unreadable_rows > 0)
    faults.push_back(fmt::format("has {} that cannot be read", counted(c.unreadable_rows, "row")));
  if (c.hidden_rows > 0)
    faults.push_back(fmt::format("has a denominator that O does not account for in {}", counted(c.hidden_rows, "row")));
  std::string text = kernel + " ";
  for (std::size_t n = 0; n < faults.size(); ++n)
    text += (n == 0 ? "" : n + 1 == faults.size() ? " and " : ", ") + faults[n];
  return text + fmt::format(": {} of {} differ.", c.wrong_rows, counted(c.rows, "row"));
}

std::string to_string(const MaskRowDifference& d) {
  std::string text = fmt::format("query {} of batch {}, head {}: ", d.i, d.b, d.h);
  std::string parts;
  const auto add = [&](const char* name, const std::string& keys) {
    if (!keys.empty()) parts += fmt::format("{}{}{}", parts.empty() ? "" : "; ", name, keys);
  };
  add("missing ", d.missing);
  add("extra ", d.extra);
  add("doubled ", d.doubled);
  add("reweighted ", d.reweighted);
  add("", d.note);
  return text + parts;
}

nlohmann::ordered_json to_json(const RecoveredMask& mask, const MaskComparison& c) {
  nlohmann::ordered_json json;
  json["launches"] = mask.launches;
  json["keys_per_column"] = mask.keys_per_column;
  json["rows"] = c.rows;
  json["wrong_rows"] = c.wrong_rows;
  json["seen"] = c.seen;
  json["should_see"] = c.should_see;
  json["missing"] = c.counts.missing;
  json["extra"] = c.counts.extra;
  json["doubled"] = c.counts.doubled;
  json["reweighted"] = c.counts.reweighted;
  json["unreadable_rows"] = c.unreadable_rows;
  json["foreign_rows"] = c.foreign_rows;
  json["hidden_rows"] = c.hidden_rows;
  json["lse_rows"] = c.lse_rows;
  json["fewest_checks"] = c.fewest_checks;
  if (mask.memory) json["memory"] = mask.memory->detail;
  json["first"] = nullptr;
  if (c.first.empty()) return json;
  const MaskRowDifference& d = c.first.front();
  json["first"] = {{"batch", d.b},         {"head", d.h},      {"query", d.i},         {"key", c.first_key},
                   {"missing", d.missing}, {"extra", d.extra}, {"doubled", d.doubled}, {"reweighted", d.reweighted},
                   {"note", d.note}};
  return json;
}

std::string to_text(const std::string& kernel, const RecoveredMask& mask, const MaskComparison& c) {
  std::string text = fmt::format("mask, read in {} launch{}: {}\n", mask.launches, mask.launches == 1 ? "" : "es",
                                 mask_sentence(kernel, c));
  for (const MaskRowDifference& d : c.first) text += fmt::format("  {}\n", to_string(d));
  const auto told = static_cast<std::int64_t>(c.first.size());
  if (c.wrong_rows > told) text += fmt::format("  and {} more\n", counted(c.wrong_rows - told, "row"));
  if (c.lse_rows > 0)
    text +=
        fmt::format("  LSE is not the sum of these weights in {}: they are relative to the row's most frequent one\n",
                    counted(c.lse_rows, "row"));
  if (mask.memory) text += fmt::format("  memory: {}\n", mask.memory->detail);
  return text;
}

}  // namespace attest
