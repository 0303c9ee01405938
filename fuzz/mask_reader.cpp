#include "mask_reader.h"

#include <algorithm>
#include <cmath>

namespace attest {

MaskReader::MaskReader(Trial& trial, const MaskOptions& options)
    : trial_(trial),
      options_(options),
      case_(mask_case(trial.the_case())),
      p_(case_.problem),
      code_(p_, trial.kernel().numerics(case_)) {
  mask_.first_batch = options.batch.value_or(0);
  mask_.batches = options.batch ? 1 : p_.batch;
  mask_.first_head = options.head.value_or(0);
  mask_.heads = options.head ? 1 : p_.nheads;
  mask_.seqlen_q = p_.seqlen_q;
  mask_.seqlen_k = p_.seqlen_k;
  mask_.keys_per_column = offers_lse() ? code_.keys_per_column : 1;
  const auto rows = static_cast<std::size_t>(mask_.batches * mask_.heads * mask_.seqlen_q);
  mask_.weights.resize(rows * static_cast<std::size_t>(p_.seqlen_k));
  mask_.rows.resize(rows);
  state_.resize(rows);
}

RecoveredMask MaskReader::read() {
  if (mask_.rows.empty()) return std::move(mask_);
  for_rows([&](Row& row) {
    if (row.i >= queries_of(p_, row.b)) row.note->state = MaskRow::State::absent;
  });
  inputs_ = make_inputs(case_);
  for (Tensor* factor : {&inputs_.q_descale, &inputs_.k_descale, &inputs_.v_descale})
    std::fill(factor->values.begin(), factor->values.end(), 1.0);
  read_sets();
  settle();
  if (options_.refine)
    refine();
  else
    for_suspects([&](Row& row) { row.note->state = MaskRow::State::unread; });
  for_rows([&](Row& row) { std::fill_n(row.weights, p_.seqlen_k, RecoveredMask::unknown); },
           [](MaskRow::State state) { return state != MaskRow::State::read && state != MaskRow::State::absent; });
  return std::move(mask_);
}

std::vector<MaskColumn> MaskReader::first_columns() const {
  std::vector<MaskColumn> columns;
  for (int bit = 0; bit < origin_bits(p_); ++bit)
    for (const std::int64_t value : {0, 1}) columns.push_back({MaskColumn::Kind::origin, bit, value});
  if (!offers_lse()) return columns;
  for (std::int64_t j = 0; j < p_.seqlen_k; j += mask_.keys_per_column)
    columns.push_back({MaskColumn::Kind::bits, j, std::min(mask_.keys_per_column, p_.seqlen_k - j)});
  for (std::int64_t s = 0; s < options_.checks; ++s) columns.push_back({MaskColumn::Kind::sign, s, 0});
  return columns;
}

// LSE's error is zero_q's: the logarithm, one rounding for its base and one for the result.
void MaskReader::take_sum(const Outputs& outputs, Row& row) const {
  if (!outputs.lse) return;
  const double lse = outputs.lse->at(row.b, row.h, row.i, 0), sum = std::exp(lse);
  if (!std::isfinite(sum) || sum <= 0) return;
  const double error = 0x1p-21 + 12 * u32 * std::abs(lse);
  const bool integer = sum * error < 0.5 && whole(sum, sum * error);
  row.state->sum = integer ? std::round(sum) : sum;
  row.state->sum_error = integer ? 0 : error;
}

void MaskReader::take_bits(const Row& row, const MaskColumn& column, double x) const {
  State& state = *row.state;
  state.shows |= x != 0;
  const double number = x == 0 ? 0 : x * state.sum;
  const double rounded = std::round(number);
  const bool good = rounded >= 0 && rounded < std::ldexp(1.0, static_cast<int>(column.count)) &&
                    std::abs(number - rounded) <= (code_.rho + state.sum_error) * std::max(number, rounded);
  state.suspect |= !good;
  const std::uint64_t digits = good ? static_cast<std::uint64_t>(rounded) : 0;
  for (std::int64_t j = 0; j < column.count; ++j) row.weights[column.first + j] = digits >> j & 1;
}

// What the drawn columns must hold if the weights are right.
void MaskReader::expect_signs(const Row& row, std::array<double, num_mask_signs>& sums, double& total) const {
  std::array<std::int32_t, num_mask_signs> counts{};
  std::int32_t ones = 0;
  sums = {};
  total = 0;
  for (std::int64_t j = 0; j < p_.seqlen_k; ++j) {
    if (row.weights[j] == 0) continue;
    const std::uint32_t bits = signs_[static_cast<std::size_t>(j)];
    if (row.weights[j] == 1) {
      ++ones;
      for (std::size_t s = 0; s < counts.size(); ++s) counts[s] += static_cast<std::int32_t>(bits >> s & 1);
      continue;
    }
    const double w = weight_at(row, j);
    total += w;
    for (std::size_t s = 0; s < counts.size(); ++s) sums[s] += (bits >> s & 1) != 0 ? w : -w;
  }
  total += ones;
  for (std::size_t s = 0; s < counts.size(); ++s) sums[s] += 2.0 * counts[s] - ones;
}

// A set of keys other than the row's own passes a decisive column with probability 1/2 at most: the signs are drawn
// without regard to the kernel, and a sum of signs that are not all multiplied by 0 takes no value more often.
void MaskReader::take_signs(const Row& row, const Outputs& outputs, std::span<const MaskColumn> columns) const {
  State& state = *row.state;
  std::array<double, num_mask_signs> expected{};
  double total = 0;
  expect_signs(row, expected, total);
  for (std::size_t at = 0; at < columns.size(); ++at) {
    if (columns[at].kind != MaskColumn::Kind::sign) continue;
    const double x = element(outputs, row, at), e = expected[static_cast<std::size_t>(columns[at].first)];
    if (x != 0) state.shows = true;
    if (std::isnan(state.sum)) continue;
    const double tolerance = (code_.rho + state.sum_error) * std::abs(e) + total * code_.summed;
    if (std::abs(x * state.sum - e) > tolerance) state.suspect = true;
    row.note->checks += tolerance < 0.5;
  }
}

void MaskReader::read_sets() {
  signs_.resize(static_cast<std::size_t>(p_.seqlen_k));
  for (std::int64_t j = 0; j < p_.seqlen_k; ++j) signs_[static_cast<std::size_t>(j)] = mask_signs(case_.seed, j);
  bool first = true;
  launch(first_columns(), [&](const Outputs& outputs, std::span<const MaskColumn> columns) {
    for_rows([&](Row& row) {
      if (first) take_sum(outputs, row);
      const std::int64_t entry = row.b * p_.nheads_k + row.h / (p_.nheads / p_.nheads_k);
      for (std::size_t at = 0; at < columns.size(); ++at) {
        const MaskColumn& column = columns[at];
        const double x = element(outputs, row, at);
        if (!std::isfinite(x)) {
          row.note->state = MaskRow::State::not_finite;
          return;
        }
        if (column.kind == MaskColumn::Kind::bits) take_bits(row, column, x);
        const bool elsewhere =
            column.kind == MaskColumn::Kind::origin && (entry >> column.first & 1) != column.count && x != 0;
        if (elsewhere) row.note->state = MaskRow::State::foreign;
      }
      if (columns.back().kind == MaskColumn::Kind::sign) take_signs(row, outputs, columns);
    });
    first = false;
  });
}

// How many keys a row sees is known twice: from O's digits and from LSE. A key that weighs 2 shows as the digit after
// its own; but of all ways to write a number as a sum of powers of two its binary digits are the fewest, and the only
// ones so few. So if both counts agree, no weight is an integer other than 0 and 1.
void MaskReader::settle() {
  for_rows([&](Row& row) {
    State& state = *row.state;
    if (!offers_lse()) {
      state.suspect = true;
      return;
    }
    const auto count = static_cast<double>(std::count(row.weights, row.weights + p_.seqlen_k, 1));
    if (!state.shows) {
      state.suspect = false;
      row.note->hidden = std::isnan(state.sum) ? 0 : std::round(state.sum);
    } else if (std::isnan(state.sum) || std::abs(count - state.sum) > state.sum * state.sum_error) {
      state.suspect = true;
    }
  });
}

}  // namespace attest
