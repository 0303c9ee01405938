// Runs a recorded program on the CPU, tile by tile, in the kernel's own precisions.
//
// Copies land as late as the program allows: at the wait. Until then the slot they go to is NaN, as is every part of
// shared memory that nothing was written to. Warps run one after another between barriers, in an order that turns at
// every barrier, so that a missing one shows in the values too; hazards.h finds it for certain.
#pragma once
#include <array>
#include <vector>

#include "attest/problem/problem.h"
#include "attest/simulator/behaviour.h"

namespace attest {

/// One tensor of a case as one head of one batch entry sees it. Rows outside [0, rows) and columns past `columns` are
/// outside the logical domain and read as NaN, whatever a wrong kernel asks for.
struct HeadView {
  std::uint8_t* base = nullptr;  // the tensor's first element
  std::int64_t offset = 0;       // of this head's first row, in elements
  std::int64_t row_stride = 0;
  std::int64_t span = 0;  // elements from the tensor's first to its last
  int rows = 0, columns = 0;
};

class Executor {
 public:
  Executor(const Behaviour& behaviour, Dtype dtype, float softmax_scale);

  /// One CTA. `lse` is this head's row of LSE.
  void run(const Program& program, const HeadView& q, const HeadView& k, const HeadView& v, const HeadView& o,
           float* lse);

 private:
  struct Copy {
    Operand operand;
    int slot, row0, limit;
  };
  struct Warp {
    int row0 = 0;  // its first query
    int rows = 0;  // how many of its rows are queries
    std::size_t next = 0;
    std::vector<float> scores, output, max;
    std::vector<std::array<float, 8>> sums;
    std::vector<Copy> open;
    std::vector<std::vector<Copy>> groups;  // committed and not yet waited for, oldest first
  };

  bool run_to_barrier(int w);
  void execute(const Step& step, int w);
  template <class F>
  void each_row(const Copy& copy, int w, F f);
  void land(const Copy& copy, int w);
  void clear(Warp& warp);
  void scores(const Step& step, int w);
  void mask(const Step& step, Warp& warp);
  void softmax(Warp& warp);
  void output(const Step& step, Warp& warp);
  void finish(Warp& warp);
  void store(const Step& step, const Warp& warp);
  float* slot(Operand x, int index) {
    return smem_[static_cast<std::size_t>(x)][static_cast<std::size_t>(index)].data();
  }

  const Behaviour& behaviour_;
  const KernelPlan& plan_;
  Dtype dtype_;
  float scale_log2_, sign_;                              // scores are sign * scale * q.k; a scale of 0 makes them 0
  std::array<std::vector<std::vector<float>>, 3> smem_;  // Q, K and V: slots of rows x columns
  std::vector<Warp> warps_;
  std::vector<float> maxima_;
  const Program* program_ = nullptr;
  std::array<const HeadView*, 4> view_{};
  float* lse_ = nullptr;
};

}  // namespace attest
