// A mask that was read off a kernel as rectangles: what mask_svg() draws twice, as it should be and as it is.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "attest/fuzz/mask_report.h"
#include "mask_pair.h"

namespace attest {

/// By PairState. The wrong ones are told apart by lightness too.
inline constexpr std::array<std::string_view, num_pair_states> mask_colours = {
    "#eef1f6", "#4a6491", "#e0201b", "#f7a40c", "#8e2cc4", "#0d9a94", "#565d66"};

/// The pairs of one (batch entry, head), in blocks where each could not be seen. Keeps references to problem and mask.
class MaskPicture {
 public:
  MaskPicture(const Problem& p, const RecoveredMask& mask, std::int64_t b, std::int64_t h);

  double width = 0, height = 0;
  double x_of(double key) const { return keys_ == 0 ? 0 : width * key / static_cast<double>(keys_); }
  double y_of(double row) const { return rows_ == 0 ? 0 : height * row / static_cast<double>(rows_); }
  std::int64_t block_rows() const { return step_q_; }
  std::int64_t block_keys() const { return step_k_; }

  /// Neighbours of one colour in a row of blocks are one rectangle. `measured`: as the kernel has it.
  std::string cells(bool measured) const;
  /// Rows with something wrong beyond their keys.
  std::string marks() const;

 private:
  std::string colour_of(std::int64_t i0, std::int64_t j0, bool measured) const;
  void add_cell(std::string& out, const std::string& colour, std::int64_t i, std::int64_t from, std::int64_t to) const;

  const Problem& p_;
  const RecoveredMask& mask_;
  std::int64_t b_, h_, rows_, keys_, step_q_ = 1, step_k_ = 1;
};

}  // namespace attest
