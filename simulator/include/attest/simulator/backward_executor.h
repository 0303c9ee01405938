// Runs a backward's recorded programs on the CPU, tile by tile, in the kernel's own precisions. As the forward's
// Executor: copies land as late as the program allows, what nobody wrote is NaN, and warps run one after another
// between barriers, in an order that turns at every barrier.
#pragma once
#include <array>
#include <set>
#include <string>
#include <vector>

#include "attest/simulator/backward_behaviour.h"
#include "attest/simulator/executor.h"
#include "attest/simulator/warp_loop.h"

namespace attest {

/// What the three kernels of a backward hand each other; NaN where nothing was written.
struct BackwardWorkspace {
  BackwardWorkspace(std::int64_t statistics_rows, std::int64_t query_rows, int headdim);
  int columns;
  std::vector<float> d;   // by row, as LSE
  std::vector<float> dq;  // fp32 accumulator, [batch, nheads, seqlen_q, columns]
};

/// One query head as a CTA reads and writes it.
struct BackwardHead {
  HeadView q, o, dout, dq;
  HeadPlace place;
  int head = 0;  // of the case
  ScoreNumbers score;
  float* dbias = nullptr;      // as score.bias
  std::int64_t bias_span = 0;  // floats from score.bias or dbias to the last that exists
};

/// What one CTA reads and writes.
struct BackwardCta {
  HeadView k, v, dk, dv;
  std::vector<BackwardHead> heads;  // that share the key head; preprocess and postprocess have one
  const float* lse = nullptr;       // of the whole case, and how many there are
  std::int64_t lse_span = 0;
  float* dsink = nullptr;  // of the whole case
  BackwardWorkspace* workspace = nullptr;
};

class BackwardExecutor {
 public:
  BackwardExecutor(const BackwardBehaviour& behaviour, Dtype dtype);

  void run(const BackwardProgram& program, const BackwardCta& cta);
  /// Accesses outside what exists, each name once.
  const std::set<std::string>& faults() const { return faults_; }

 private:
  struct Warp {
    std::vector<float> p, dp, slopes;  // rows_per_warp x tile_n: S, then P; dP, then dS; of softcap
    std::vector<float> dk, dv;         // keys_per_warp x columns
    CopyGroups<BackwardStep> copies;
  };

  void execute(const BackwardStep& step, int w);

  // global memory
  template <class F>
  void each_row(BackwardTile x, int w, F f);
  const std::uint8_t* row_at(const HeadView& view, BackwardTile x, std::int64_t row, int columns, int bytes);
  bool load(const HeadView& view, BackwardTile x, Dtype dtype, std::int64_t row, int columns, float* to);
  void store(const HeadView& view, BackwardTile x, std::int64_t row, const float* from);
  void copy_poison(const BackwardStep& step, int w);
  void land(const BackwardStep& step, int w);
  float statistic(BackwardTile x, const BackwardHead& head, std::int64_t row);
  float* accumulator(const BackwardHead& head, std::int64_t row);
  float* dbias_at(const BackwardHead& head, std::int64_t row, int key0, int keys);
  void add_dbias(const BackwardStep& step, const Warp& warp, int w);
  void add_dq(const BackwardStep& step, int w);
  void store_tile(const BackwardStep& step, int w);
  void row_products(const BackwardStep& step, int w);
  void sink_gradient(const BackwardStep& step, int w);
  void convert(const BackwardStep& step, int w);

  // tiles
  void scores(const BackwardStep& step, Warp& warp, int w);
  void modify(const BackwardStep& step, Warp& warp, int w);
  void mask(const BackwardStep& step, Warp& warp, int w);
  void probabilities(const BackwardStep& step, Warp& warp, int w);
  void dprobabilities(const BackwardStep& step, Warp& warp, int w);
  void dscores(const BackwardStep& step, Warp& warp, int w);
  void put(const Warp& warp, int w);
  void put_dq(int w);
  void stage(const Warp& warp, int w);

  float* tile(BackwardTile x, int slot) {
    return smem_[static_cast<std::size_t>(plan_.place_of(x))][static_cast<std::size_t>(slot)].data();
  }
  const BackwardHead& head_of(const BackwardStep& step) const {
    return cta_->heads[static_cast<std::size_t>(step.head)];
  }
  int first_row(const BackwardStep& step, int w) const { return step.tile * plan_.tile_m + w * plan_.rows_per_warp(); }
  int first_key() const { return program_->work.k_tile * plan_.tile_n; }

  const BackwardBehaviour& behaviour_;
  const BackwardPlan& plan_;
  Dtype dtype_;
  std::array<std::vector<std::vector<float>>, 11> smem_;  // by BackwardTile: slots of rows x columns
  std::vector<Warp> warps_;
  std::vector<float> row_, other_row_;
  const BackwardProgram* program_ = nullptr;
  const BackwardCta* cta_ = nullptr;
  std::set<std::string> faults_;
};

}  // namespace attest
