#include <algorithm>
#include <cmath>
#include <iterator>

#include "mask_reader.h"

namespace attest {
namespace {

constexpr std::int64_t chunk = 64;  // keys: a sum that every output resolves

}  // namespace

void MaskReader::set_weight(const Row& row, std::int64_t j, double w) {
  const double rounded = std::round(w);
  const bool integer = rounded >= 0 && rounded < RecoveredMask::fraction && whole(w, code_.rho * std::abs(w) * 2);
  row.weights[j] = integer ? static_cast<std::uint8_t>(rounded) : RecoveredMask::fraction;
  const std::int64_t at = row.index * p_.seqlen_k + j;
#pragma omp critical(attest_mask_fractions)
  if (integer)
    mask_.fractions.erase(at);
  else
    mask_.fractions[at] = w;
}

// While other threads add the fractions of other rows.
double MaskReader::weight_at(const Row& row, std::int64_t j) const {
  if (row.weights[j] != RecoveredMask::fraction) return row.weights[j];
  double w = 0;
#pragma omp critical(attest_mask_fractions)
  w = mask_.fractions.at(row.index * p_.seqlen_k + j);
  return w;
}

void MaskReader::refine() {
  if (!any_suspect()) return;
  find_dead_columns();
  if (offers_lse()) weigh_suspicious_chunks();
  if (any_suspect()) weigh_every_key();
}

// V = 1: every column of O is the share of the denominator that O shows.
void MaskReader::find_dead_columns() {
  const std::vector<MaskColumn> ones(static_cast<std::size_t>(p_.headdim_v), {MaskColumn::Kind::sum, 0, p_.seqlen_k});
  launch(ones, [&](const Outputs& outputs, std::span<const MaskColumn> columns) {
    for_suspects([&](Row& row) {
      double low = std::numeric_limits<double>::infinity(), high = -low;
      for (std::size_t at = 0; at < columns.size(); ++at) {
        const double x = element(outputs, row, at);
        low = std::min(low, x);
        high = std::max(high, x);
      }
      row.state->shown = high;
      if (!(high - low <= 2 * code_.rho * std::abs(high))) row.note->state = MaskRow::State::dead_columns;
    });
  });
}

// Where a chunk of keys weighs what was read in it, its keys are believed; the drawn columns then say whether
// rightly.
void MaskReader::weigh_suspicious_chunks() {
  std::vector<MaskColumn> chunks;
  for (std::int64_t j = 0; j < p_.seqlen_k; j += chunk)
    chunks.push_back({MaskColumn::Kind::sum, j, std::min(chunk, p_.seqlen_k - j)});
  std::vector<char> suspicious(chunks.size());
  std::size_t before = 0;
  launch(chunks, [&](const Outputs& outputs, std::span<const MaskColumn> columns) {
    for_suspects([&](Row& row) {
      for (std::size_t at = 0; at < columns.size(); ++at) {
        const std::uint8_t* keys = row.weights + columns[at].first;
        const auto count = static_cast<double>(std::count(keys, keys + columns[at].count, 1));
        const double measured = element(outputs, row, at) * row.state->sum;
        if (!(std::abs(measured - count) <= (code_.rho + row.state->sum_error) * count))
#pragma omp atomic write
          suspicious[before + at] = 1;
      }
    });
    before += columns.size();
  });
  std::vector<MaskColumn> keys;
  for (std::size_t c = 0; c < chunks.size(); ++c)
    for (std::int64_t j = 0; suspicious[c] != 0 && j < chunks[c].count; ++j)
      keys.push_back({MaskColumn::Kind::sum, chunks[c].first + j, 1});
  if (static_cast<std::int64_t>(keys.size()) == p_.seqlen_k) return;
  launch(keys, [&](const Outputs& outputs, std::span<const MaskColumn> columns) {
    for_suspects([&](Row& row) {
      if (std::isnan(row.state->sum)) return;
      for (std::size_t at = 0; at < columns.size(); ++at)
        set_weight(row, columns[at].first, element(outputs, row, at) * row.state->sum);
    });
  });
  check_again();
}

// Weights that LSE's sum makes no integers of are told from a wrong LSE only by every other key of their row.
void MaskReader::check_again() {
  for_suspects([&](Row& row) {
    if (std::isnan(row.state->sum)) return;
    const bool fractions = std::count(row.weights, row.weights + p_.seqlen_k, RecoveredMask::fraction) > 0;
    row.state->suspect = fractions;
    row.state->again = !fractions;
    row.note->checks = 0;
    const double hidden = row.state->sum - weight_of(row);
    row.note->hidden = std::abs(hidden) <= row.state->sum * (row.state->sum_error + 0x1p-18) ? 0 : hidden;
  });
  std::vector<MaskColumn> columns;
  for (std::int64_t s = 0; s < options_.checks; ++s) columns.push_back({MaskColumn::Kind::sign, s, 0});
  launch(columns, [&](const Outputs& outputs, std::span<const MaskColumn> some) {
    for_rows([&](Row& row) {
      if (row.state->again) take_signs(row, outputs, some);
    });
  });
}

double MaskReader::weight_of(const Row& row) const {
  double total = 0;
  for (std::int64_t j = 0; j < p_.seqlen_k; ++j) total += weight_at(row, j);
  return total;
}

// One key a column. Where LSE's sum makes no integers of them, the row's most frequent value is called 1.
void MaskReader::weigh_every_key() {
  std::vector<MaskColumn> keys;
  for (std::int64_t j = 0; j < p_.seqlen_k; ++j) keys.push_back({MaskColumn::Kind::sum, j, 1});
  std::vector<std::int64_t> slot(state_.size(), -1);
  std::int64_t suspects = 0;
  for (std::size_t r = 0; r < state_.size(); ++r)
    if (state_[r].suspect && mask_.rows[r].state == MaskRow::State::read) slot[r] = suspects++;
  std::vector<float> shares(static_cast<std::size_t>(suspects * p_.seqlen_k));
  launch(keys, [&](const Outputs& outputs, std::span<const MaskColumn> columns) {
    for_suspects([&](Row& row) {
      float* own = shares.data() + slot[static_cast<std::size_t>(row.index)] * p_.seqlen_k;
      for (std::size_t at = 0; at < columns.size(); ++at)
        own[columns[at].first] = static_cast<float>(element(outputs, row, at));
    });
  });
  for_suspects([&](Row& row) {
    const float* own = shares.data() + slot[static_cast<std::size_t>(row.index)] * p_.seqlen_k;
    weigh(row, std::span<const float>(own, static_cast<std::size_t>(p_.seqlen_k)));
  });
}

void MaskReader::weigh(Row& row, std::span<const float> shares) {
  if (std::any_of(shares.begin(), shares.end(), [](float x) { return !std::isfinite(x); })) {
    row.note->state = MaskRow::State::not_finite;
    return;
  }
  const double usual = most_frequent(shares);
  double sum = row.state->sum;
  const double frequent = usual * sum;
  const bool agrees = row.state->sum_error == 0 && whole(frequent, 2 * code_.rho * frequent);
  if (!agrees && usual > 0) {
    row.note->lse_disagrees = !std::isnan(sum);
    sum = 1 / usual;
  }
  for (std::int64_t j = 0; j < p_.seqlen_k; ++j)
    set_weight(row, j, shares[static_cast<std::size_t>(j)] == 0 ? 0 : shares[static_cast<std::size_t>(j)] * sum);
  if (agrees) {
    const double hidden = sum - weight_of(row);
    row.note->hidden = std::abs(hidden) <= 0.5 ? 0 : hidden;
  } else if (usual > 0 && std::abs(1 - row.state->shown) > 2 * code_.rho) {
    row.note->hidden = (1 - row.state->shown) * sum;
  }
}

// Of the values above 0, told apart by O's rounding; the smallest of equally frequent ones.
double MaskReader::most_frequent(std::span<const float> shares) const {
  std::vector<float> sorted;
  std::copy_if(shares.begin(), shares.end(), std::back_inserter(sorted), [](float x) { return x > 0; });
  std::sort(sorted.begin(), sorted.end());
  std::size_t best = 0;
  double value = 0;
  for (std::size_t low = 0, high = 0; low < sorted.size(); ++low) {
    while (high < sorted.size() && sorted[high] <= sorted[low] * (1 + 2 * code_.rho)) ++high;
    if (high - low > best) best = high - low, value = sorted[(low + high - 1) / 2];
  }
  return value;
}

}  // namespace attest
