// Reads which keys each row sees from launches on coded V (mask_code.h): first as sets, then, where no set explains
// what came out, as weights.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "attest/fuzz/mask_recovery.h"
#include "mask_code.h"
#include "property_parts.h"

namespace attest {

class MaskReader {
 public:
  MaskReader(Trial& trial, const MaskOptions& options);
  RecoveredMask read();

 private:
  static constexpr double no_sum = std::numeric_limits<double>::quiet_NaN();
  static constexpr std::size_t worth_threads = std::size_t{1} << 20;  // pairs

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

  static bool whole(double x, double tolerance) { return std::abs(x - std::round(x)) <= tolerance; }
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

  // Sets of keys: mask_reader.cpp.
  std::vector<MaskColumn> first_columns() const;
  void take_sum(const Outputs& outputs, Row& row) const;
  void take_bits(const Row& row, const MaskColumn& column, double x) const;
  void expect_signs(const Row& row, std::array<double, num_mask_signs>& sums, double& total) const;
  void take_signs(const Row& row, const Outputs& outputs, std::span<const MaskColumn> columns) const;
  void read_sets();
  void settle();

  // Weights: mask_weights.cpp.
  void set_weight(const Row& row, std::int64_t j, double w);
  double weight_at(const Row& row, std::int64_t j) const;
  void refine();
  void find_dead_columns();
  void weigh_suspicious_chunks();
  void check_again();
  double weight_of(const Row& row) const;
  void weigh_every_key();
  void weigh(Row& row, std::span<const float> shares);
  double most_frequent(std::span<const float> shares) const;

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

}  // namespace attest
