// Runs a recorded program on the CPU, tile by tile, in the kernel's own precisions.
//
// Copies land as late as the program allows: at the wait. Until then the slot they go to is NaN, as is every part of
// shared memory that nothing was written to. Warps run one after another between barriers, in an order that turns at
// every barrier, so that a missing one shows in the values too; hazards.h finds it for certain.
#pragma once
#include <array>
#include <set>
#include <string>
#include <vector>

#include "attest/problem/problem.h"
#include "attest/simulator/behaviour.h"
#include "attest/simulator/warp_loop.h"

namespace attest {

/// One tensor of a case as one head of one batch entry sees it. Rows outside [0, rows), pages outside its table,
/// columns past `columns` and everything past the tensor's end read as NaN, whatever a wrong kernel asks for.
struct HeadView {
  std::uint8_t* base = nullptr;  // the tensor's first element
  std::int64_t offset = 0;       // of this head's first row, or of its first row in page 0, in elements
  std::int64_t row_stride = 0, head_stride = 0;
  std::int64_t span = 0;  // elements from the tensor's first to its last
  std::int64_t rows = 0;
  int columns = 0;
  const std::int32_t* pages = nullptr;  // of this batch entry; row r lies in page pages[r / page_size]
  std::int64_t num_pages = 0, page_size = 0, page_stride = 0;
};

/// What splits leave to combine(): rows of fp32 O and their LSE, NaN where nothing was written.
struct Workspace {
  Workspace(std::int64_t rows, int headdim_v);
  void forget();  // as if freed: NaN again
  int columns;
  std::vector<float> o, lse;
};

/// What one CTA reads and writes.
struct Cta {
  HeadView q, k, v, o;
  ScoreNumbers score;          // its scale with the descales of Q and K
  std::int64_t bias_span = 0;  // floats from score.bias to the last that exists
  float output_scale = 1;      // V's descale
  float* lse = nullptr;        // of the whole case, and how many there are
  std::int64_t lse_span = 0;
  HeadPlace place;
  Workspace* workspace = nullptr;  // with splits
};

class Executor {
 public:
  Executor(const Behaviour& behaviour, Dtype dtype);

  void run(const Program& program, const Cta& cta);
  /// Accesses outside what exists that leave no trace in the results, each name once.
  const std::set<std::string>& faults() const { return faults_; }

 private:
  struct Copy {
    Operand operand;
    int slot, row0, limit;
  };
  struct Warp {
    int row0 = 0;         // its first row
    int rows = 0;         // how many of its rows are queries of a head
    bool masked = false;  // the tile whose scores it holds
    std::vector<float> scores, output, max, lse;
    std::vector<float> weights;  // by split, then row
    std::vector<std::array<float, 8>> sums;
    CopyGroups<Copy> copies;
  };

  void execute(const Step& step, int w);
  template <class F>
  void each_row(const Copy& copy, int w, F f);
  void check_address(Operand x, const std::uint8_t* address);
  std::int64_t offset_of(const HeadView& view, std::int64_t row);
  std::int64_t query_offset_of(const HeadView& view, int row);
  void land(const Copy& copy, int w);
  void set_scale();
  void clear(Warp& warp);
  void scores(const Step& step, int w);
  void modify(const Step& step, Warp& warp);
  void mask(const Step& step, Warp& warp);
  void softmax(Warp& warp);
  void output(const Step& step, Warp& warp);
  void finish(Warp& warp);
  void write_lse(const HeadPlace& place, const Warp& warp);
  void store(const Step& step, const Warp& warp);
  void store_partial(const Step& step, const Warp& warp);
  void weigh(Warp& warp);
  void add_partial(const Step& step, Warp& warp);
  std::int64_t partial_row(const HeadPlace& at, int split, int row);
  float* slot(Operand x, int index) {
    return smem_[static_cast<std::size_t>(x)][static_cast<std::size_t>(index)].data();
  }

  const Behaviour& behaviour_;
  const KernelPlan& plan_;
  Dtype dtype_;
  float scale_log2_ = 1, sign_ = 1;  // exponents are of scale_log2 * (sign * q.k), or of modified scores
  std::array<std::vector<std::vector<float>>, 3> smem_;  // Q, K and V: slots of rows x columns
  std::vector<Warp> warps_;
  std::vector<float> bias_;
  const Program* program_ = nullptr;
  const Cta* cta_ = nullptr;
  std::set<std::string> faults_;
};

}  // namespace attest
