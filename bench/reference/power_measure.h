// One fault at one size: what each rule and each probe sees of it.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "power_faults.h"

namespace attest::power {

struct Share {
  long over = 0, of = 0;
};

/// By name, in the order of first use.
class Shares {
 public:
  Share& operator[](std::string_view name);
  const std::vector<std::pair<std::string, Share>>& all() const { return shares_; }

 private:
  std::vector<std::pair<std::string, Share>> shares_;
};

/// The name of a share of `ours`: of the problems that were put to the probes, those that any rule or probe accuses.
inline constexpr std::string_view together = "ours together";

struct Cell {
  std::string fault;
  std::int64_t keys = 0, headdim = 64;
  bool causal = false;
  Dtype dtype = Dtype::bf16;
  Shares rows;            // of rows (of blocks for G), by rule of the budgets
  Shares ours, peers;     // of problems, by rule of the budgets, probe, and other project
  double effect_o = 0;    // root mean square change of the worst row of O over that of the rounding of O
  double effect_lse = 0;  // largest change of LSE over its spacing
  bool beyond_rounding() const { return effect_o > 1 || effect_lse > 1; }
};

struct Grid {
  std::vector<std::int64_t> keys{256, 1024, 4096, 16384};
  std::vector<Dtype> dtypes{Dtype::bf16, Dtype::fp16};
  std::int64_t headdim = 64, seqlen_q = 128;
  int problems = 4, problems_for_probes = 1;
  std::int64_t most_keys_of_many_rows = 16384;
};

/// Every fault of one number of keys, mask and dtype; the right kernel first.
std::vector<Cell> measure(const Grid& grid, std::int64_t keys, bool causal, Dtype dtype);

/// The smallest sizes that are seen, at one number of keys without a mask; 0: none.
struct Detectable {
  std::int64_t keys = 0;
  Dtype dtype = Dtype::bf16;
  double scale_by_budgets = 0, scale_by_lookup = 0;          // relative errors of softmax_scale, powers of 2
  int output_bits_by_budgets = 0, output_bits_by_probe = 0;  // most significant bits of O between tiles that are seen
};
Detectable detectable(const Grid& grid, std::int64_t keys, Dtype dtype);

}  // namespace attest::power
