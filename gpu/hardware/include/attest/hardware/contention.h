// Instructions of a softmax and products of wgmma on one SM at once: how much slower each is for the other, and how
// many products a warpgroup has under way. For compute capability 9.0; throws std::runtime_error with CUDA's words
// where a call of it fails.
#pragma once

#include <string>
#include <vector>

namespace attest::hardware {

/// Of each of `warpgroups`, cycles of a part of the softmax of 64 x `tile_n` scores, alone and while another warpgroup
/// multiplies 64 x `columns` x 16 without end, and the cycles of such a product, alone and meanwhile.
struct ContentionRow {
  std::string part;
  int tile_n = 0, warpgroups = 0, columns = 0;
  std::string a;  ///< A's place
  double alone = 0, beside = 0, product_alone = 0, product_beside = 0;
};
std::vector<ContentionRow> measure_contention();

/// Of a warpgroup alone, cycles from its first product of 64 x `tile_n` scores until it has issued the last of 64 x
/// `headdim` outputs, which follow them at once, sees the scores, and sees the outputs.
struct IssueRow {
  int tile_n = 0, headdim = 0;
  bool p_in_smem = false;
  long long issued = 0, scores = 0, output = 0;
};
std::vector<IssueRow> measure_issue();

}  // namespace attest::hardware
