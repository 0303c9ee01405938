#include "attest/gpu/tensor_memory.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "attest/reference/rounding.h"

namespace attest {
namespace {

/// Calls visit(element offset in memory, index in the dense tensor, count) for every innermost row there is.
template <class Visit>
void for_rows(const Placement& p, Visit visit) {
  const std::int64_t heads = p.heads();
  for (std::int64_t a = 0; a < p.extents[0]; ++a)
    for (std::int64_t s = 0; s < p.rows(a); ++s)
      for (std::int64_t h = 0; h < heads; ++h) visit(p.offset(a, s, h), p.index(a, s, h), p.extents[3]);
}

template <std::size_t size>
std::vector<std::int64_t> left_in(const PoisonedMemory& memory, const Placement& placement) {
  std::vector<std::int64_t> left;
  for_rows(placement, [&](std::int64_t offset, std::int64_t index, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t at = static_cast<std::size_t>(offset + i) * size;
      if (std::memcmp(memory.data() + at, memory.remembered() + at, size) == 0) left.push_back(index + i);
    }
  });
  return left;
}

}  // namespace

void TensorMemory::place(Placement placement, Dtype dtype, std::int64_t base_offset) {
  placement_ = std::move(placement);
  dtype_ = dtype;
  // A tile is at most 128 tokens: that much is ours on either side, within reason, and as much of it as is cheap is
  // checked.
  constexpr std::int64_t smallest_margin = 512, largest_margin = 32 << 10, largest_slack = 1 << 20;
  const std::int64_t size = bytes_of(dtype), tile = 128 * placement_.row_stride * size;
  memory_.reserve(static_cast<std::size_t>(placement_.span * size), static_cast<std::size_t>(base_offset * size),
                  static_cast<std::size_t>(std::clamp(tile, smallest_margin, largest_margin)),
                  static_cast<std::size_t>(std::clamp(tile, smallest_margin, largest_slack)));
}

void TensorMemory::lay_out(const Tensor& tensor) {
  if (tensor.extents != placement_.extents)
    throw std::logic_error("TensorMemory: a tensor does not have the extents of the case");
  memory_.fill_nan();
  for_rows(placement_, [&](std::int64_t offset, std::int64_t index, std::int64_t count) {
    encode_row(dtype_, tensor.values.data() + index, count, memory_.data() + offset * bytes_of(dtype_));
  });
  memory_.remember();
}

void TensorMemory::fill_pattern(bool flipped) {
  memory_.fill_pattern(flipped);
  memory_.remember();
}

Tensor TensorMemory::gather() const {
  Tensor tensor(placement_.extents);
  for_rows(placement_, [&](std::int64_t offset, std::int64_t index, std::int64_t count) {
    decode_row(dtype_, memory_.data() + offset * bytes_of(dtype_), count, tensor.values.data() + index);
  });
  return tensor;
}

std::vector<std::int64_t> TensorMemory::pattern_left() const {
  return bytes_of(dtype_) == 2 ? left_in<2>(memory_, placement_) : left_in<4>(memory_, placement_);
}

std::int64_t TensorMemory::changed_outside() {
  const std::int64_t size = bytes_of(dtype_);
  for_rows(placement_, [&](std::int64_t offset, std::int64_t, std::int64_t count) {
    std::memcpy(memory_.data() + offset * size, memory_.remembered() + offset * size,
                static_cast<std::size_t>(count * size));
  });
  return memory_.changed();
}

void ListMemory::make_room(std::size_t count) {
  constexpr std::size_t margin = 1 << 10;
  held_ = count > 0;
  if (!held_) return;
  memory_.reserve(4 * count, 0, margin, margin);
  memory_.fill_nan();
}

const std::int32_t* ListMemory::hold_integers(const std::vector<std::int64_t>& values) {
  make_room(values.size());
  if (!held_) return nullptr;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<std::int32_t>(values[i]);
    std::memcpy(memory_.data() + 4 * i, &value, 4);
  }
  memory_.remember();
  return reinterpret_cast<const std::int32_t*>(memory_.data());
}

const float* ListMemory::hold_floats(const std::vector<double>& values) {
  make_room(values.size());
  if (!held_) return nullptr;
  encode_row(Dtype::fp32, values.data(), static_cast<std::int64_t>(values.size()), memory_.data());
  memory_.remember();
  return reinterpret_cast<const float*>(memory_.data());
}

}  // namespace attest
