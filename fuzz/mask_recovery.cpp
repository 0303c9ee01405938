#include "attest/fuzz/mask_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "attest/problem/error.h"
#include "mask_code.h"
#include "property_parts.h"

namespace attest {
namespace {

constexpr double u32 = 0x1p-24;
constexpr std::int64_t chunk = 64;                           // keys: a sum that every output resolves
constexpr std::size_t worth_threads = std::size_t{1} << 20;  // pairs
constexpr double no_sum = std::numeric_limits<double>::quiet_NaN();

bool whole(double x, double tolerance) { return std::abs(x - std::round(x)) <= tolerance; }

class Reader {
 public:
  Reader(Trial& trial, const MaskOptions& options)
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

  RecoveredMask read() {
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

  std::vector<MaskColumn> first_columns() const {
    std::vector<MaskColumn> columns;
    for (int bit = 0; bit < origin_bits(p_); ++bit)
      for (const std::int64_t value : {0, 1}) columns.push_back({MaskColumn::Kind::origin, bit, value});
    if (!offers_lse()) return columns;
    for (std::int64_t j = 0; j < p_.seqlen_k; j += mask_.keys_per_column)
      columns.push_back({MaskColumn::Kind::bits, j, std::min(mask_.keys_per_column, p_.seqlen_k - j)});
    for (std::int64_t s = 0; s < options_.checks; ++s) columns.push_back({MaskColumn::Kind::sign, s, 0});
    return columns;
  }

 private:
  bool offers_lse() const { return trial_.kernel().capability().offers_lse; }

  // What is known of a row while it is read.
  struct State {
    double sum = no_sum;   // L
    double sum_error = 0;  // relative; 0: L is known to be this integer
    double shown = 1;      // the share of L that O shows
    bool shows = false;    // some column of O is not 0
    bool suspect = false;  // no set of keys explains all columns
    bool again = false;    // was, and was then weighed in part
  };
  struct Row {
    std::int64_t index, b, h, i;
    State* state;
    MaskRow* note;
    std::uint8_t* weights;
  };

  static bool is_read(MaskRow::State state) { return state == MaskRow::State::read; }

  template <class Visit, class Wanted = bool (*)(MaskRow::State)>
  void for_rows(Visit visit, Wanted wanted = is_read) {
#pragma omp parallel for schedule(dynamic, 64) if (mask_.weights.size() > worth_threads)
    for (std::int64_t r = 0; r < static_cast<std::int64_t>(state_.size()); ++r) {
      const std::int64_t i = r % mask_.seqlen_q, entry = r / mask_.seqlen_q;
      Row row{r,
              mask_.first_batch + entry / mask_.heads,
              mask_.first_head + entry % mask_.heads,
              i,
              &state_[static_cast<std::size_t>(r)],
              &mask_.rows[static_cast<std::size_t>(r)],
              mask_.weights.data() + r * p_.seqlen_k};
      if (wanted(row.note->state)) visit(row);
    }
  }
  template <class Visit>
  void for_suspects(Visit visit) {
    for_rows([&](Row& row) {
      if (row.state->suspect) visit(row);
    });
  }
  bool any_suspect() {
    bool any = false;
    for (std::size_t r = 0; r < state_.size(); ++r)
      any |= state_[r].suspect && mask_.rows[r].state == MaskRow::State::read;
    return any;
  }

  // Runs `columns`, headdim_v of them a launch; see(outputs, the launch's columns) after each.
  template <class See>
  void launch(const std::vector<MaskColumn>& columns, See see) {
    const auto width = static_cast<std::size_t>(p_.headdim_v);
    for (std::size_t at = 0; at < columns.size(); at += width) {
      const std::span<const MaskColumn> some(columns.data() + at, std::min(width, columns.size() - at));
      fill_values(case_, code_, some, inputs_.v);
      const ForwardRun run = trial_.run(case_, inputs_);
      ++mask_.launches;
      if (!mask_.memory) mask_.memory = memory_flaw(run.outputs);
      see(run.outputs, some);
    }
  }

  // sum_j w_j V[j, column] / L
  double element(const Outputs& outputs, const Row& row, std::size_t column) const {
    const double x = outputs.o.at(row.b, row.i, row.h, static_cast<std::int64_t>(column));
    return std::abs(x) < code_.floor ? 0 : x / code_.unit;
  }

  // LSE's error is zero_q's: the logarithm, one rounding for its base and one for the result.
  void take_sum(const Outputs& outputs, Row& row) const {
    if (!outputs.lse) return;
    const double lse = outputs.lse->at(row.b, row.h, row.i, 0), sum = std::exp(lse);
    if (!std::isfinite(sum) || sum <= 0) return;
    const double error = 0x1p-21 + 12 * u32 * std::abs(lse);
    const bool integer = sum * error < 0.5 && whole(sum, sum * error);
    row.state->sum = integer ? std::round(sum) : sum;
    row.state->sum_error = integer ? 0 : error;
  }

  void take_bits(const Row& row, const MaskColumn& column, double x) const {
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
  void expect_signs(const Row& row, std::array<double, num_mask_signs>& sums, double& total) const {
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
  void take_signs(const Row& row, const Outputs& outputs, std::span<const MaskColumn> columns) const {
    State& state = *row.state;
    std::array<double, num_mask_signs> expected{};
    double total = 0;
    expect_signs(row, expected, total);
    for (std::size_t at = 0; at < columns.size(); ++at) {
      if (columns[at].kind != MaskColumn::Kind::sign) continue;
      const double x = element(outputs, row, at), e = expected[static_cast<std::size_t>(columns[at].first)];
      if (x != 0) state.shows = true;
      if (std::isnan(state.sum)) continue;
      const double tolerance = (code_.rho + state.sum_error) * std::abs(e) + total * 0x1p-18;
      if (std::abs(x * state.sum - e) > tolerance) state.suspect = true;
      row.note->checks += tolerance < 0.5;
    }
  }

  void read_sets() {
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
  void settle() {
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

  void set_weight(const Row& row, std::int64_t j, double w) {
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
  double weight_at(const Row& row, std::int64_t j) const {
    if (row.weights[j] != RecoveredMask::fraction) return row.weights[j];
    double w = 0;
#pragma omp critical(attest_mask_fractions)
    w = mask_.fractions.at(row.index * p_.seqlen_k + j);
    return w;
  }

  void refine() {
    if (!any_suspect()) return;
    find_dead_columns();
    if (offers_lse()) weigh_suspicious_chunks();
    if (any_suspect()) weigh_every_key();
  }

  // V = 1: every column of O is the share of the denominator that O shows.
  void find_dead_columns() {
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
  void weigh_suspicious_chunks() {
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
  void check_again() {
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

  double weight_of(const Row& row) const {
    double total = 0;
    for (std::int64_t j = 0; j < p_.seqlen_k; ++j) total += weight_at(row, j);
    return total;
  }

  // One key a column. Where LSE's sum makes no integers of them, the row's most frequent value is called 1.
  void weigh_every_key() {
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

  void weigh(Row& row, std::span<const float> shares) {
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
  double most_frequent(std::span<const float> shares) const {
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

  Trial& trial_;
  MaskOptions options_;
  Case case_;
  const Problem& p_;
  MaskCode code_;
  Inputs inputs_;
  RecoveredMask mask_;
  std::vector<State> state_;
  std::vector<std::uint32_t> signs_;
};

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
  return Reader(trial, options).read();
}

RecoveredMask recover_mask(Kernel& kernel, const Case& c, const MaskOptions& options) {
  ForwardBuffers buffers;
  Trial trial(kernel, buffers, c);
  return recover_mask(trial, options);
}

}  // namespace attest
