// A dense float64 tensor in the memory that a kernel sees: laid out, poisoned around, read back.
#pragma once
#include <cstdint>
#include <vector>

#include "attest/gpu/placement.h"
#include "attest/gpu/poisoned.h"
#include "attest/plan/args.h"
#include "attest/reference/tensor.h"

namespace attest {

/// Keeps its allocation between uses. Rows past a batch entry's length are outside the logical domain.
class TensorMemory {
 public:
  /// Makes room. `base_offset` in elements off the alignment.
  void place(Placement placement, Dtype dtype, std::int64_t base_offset);

  /// As an input: the tensor's values, representable in the dtype, and NaN around them. Throws std::logic_error if its
  /// extents are not the placement's.
  void lay_out(const Tensor& tensor);
  /// As an output: a pattern everywhere.
  void fill_pattern(bool flipped);
  /// What it holds now is what it must hold from here on: an output of one kernel, an input of the next.
  void keep() { memory_.remember(); }
  /// Puts back what it held before the run.
  void restore() { memory_.restore(); }

  Tensor gather() const;
  /// The elements that still hold their pattern, as indices into the dense tensor, in order.
  std::vector<std::int64_t> pattern_left() const;
  /// Bytes of an input that changed.
  std::int64_t changed() const { return memory_.changed(); }
  /// Bytes of an output that changed outside its elements, which get their pattern back.
  std::int64_t changed_outside();

  TensorRef ref() { return {memory_.data(), placement_.batch_stride, placement_.row_stride, placement_.head_stride}; }
  std::byte* data() { return memory_.data(); }
  MemoryRange range() const { return memory_.range(); }
  const Placement& placement() const { return placement_; }

 private:
  Placement placement_;
  Dtype dtype_ = Dtype::fp32;
  PoisonedMemory memory_;
};

/// A plain list of numbers that a kernel is handed, such as lengths, with poison around it.
class ListMemory {
 public:
  /// Null where there are none.
  const std::int32_t* hold_integers(const std::vector<std::int64_t>& values);
  const float* hold_floats(const std::vector<double>& values);
  bool held() const { return held_; }
  MemoryRange range() const { return memory_.range(); }
  std::int64_t changed() const { return held_ ? memory_.changed() : 0; }
  void restore() {
    if (held_) memory_.restore();
  }

 private:
  void make_room(std::size_t count);
  bool held_ = false;
  PoisonedMemory memory_;
};

}  // namespace attest
