#include "attest/gpu/forward_buffers.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "attest/problem/error.h"

namespace attest {
namespace {

/// Calls visit(element offset in memory, index in the dense tensor, count) for every innermost row.
template <class Visit>
void for_rows(const Placement& p, Visit visit) {
  std::int64_t index = 0;
  for (std::int64_t a = 0; a < p.extents[0]; ++a)
    for (std::int64_t s = 0; s < p.extents[1]; ++s)
      for (std::int64_t h = 0; h < p.extents[2]; ++h, index += p.extents[3])
        visit(p.offset(a, s, h), index, p.extents[3]);
}

// Inputs are representable in their dtype, so every conversion here is exact and the hardware's own will do; the
// oracle's encode() and decode(), which round in software, are what tests hold these to.
template <class Word>
void encode_row(Dtype dtype, const double* values, std::int64_t count, std::byte* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(values[i]);
    Word word;
    if constexpr (sizeof(Word) == 4)
      word = std::bit_cast<std::uint32_t>(value);
    else if (dtype == Dtype::bf16)
      word = static_cast<Word>(std::bit_cast<std::uint32_t>(value) >> 16);
    else
      word = _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
    std::memcpy(out + i * static_cast<std::int64_t>(sizeof word), &word, sizeof word);
  }
}

template <class Word>
void decode_row(Dtype dtype, const std::byte* in, std::int64_t count, double* values) {
  for (std::int64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, in + i * static_cast<std::int64_t>(sizeof word), sizeof word);
    if constexpr (sizeof(Word) == 4)
      values[i] = std::bit_cast<float>(word);
    else if (dtype == Dtype::bf16)
      values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(word) << 16);
    else
      values[i] = _cvtsh_ss(word);
  }
}

void lay_out(const Tensor& tensor, const Placement& placement, Dtype dtype, PoisonedMemory& memory) {
  if (tensor.extents != placement.extents)
    throw std::logic_error("ForwardBuffers: inputs do not have the extents of the case");
  memory.fill_nan();
  const auto encode_row_of = dtype == Dtype::fp32 ? encode_row<std::uint32_t> : encode_row<std::uint16_t>;
  for_rows(placement, [&](std::int64_t offset, std::int64_t index, std::int64_t count) {
    encode_row_of(dtype, tensor.values.data() + index, count, memory.data() + offset * bytes_of(dtype));
  });
  memory.remember();
}

Tensor gather(const PoisonedMemory& memory, const Placement& placement, Dtype dtype) {
  Tensor tensor(placement.extents);
  const auto decode_row_of = dtype == Dtype::fp32 ? decode_row<std::uint32_t> : decode_row<std::uint16_t>;
  for_rows(placement, [&](std::int64_t offset, std::int64_t index, std::int64_t count) {
    decode_row_of(dtype, memory.data() + offset * bytes_of(dtype), count, tensor.values.data() + index);
  });
  return tensor;
}

template <class Word>
bool holds_pattern(const PoisonedMemory& memory, std::int64_t element) {
  Word now, then;
  std::memcpy(&now, memory.data() + element * static_cast<std::int64_t>(sizeof(Word)), sizeof(Word));
  std::memcpy(&then, memory.remembered() + element * static_cast<std::int64_t>(sizeof(Word)), sizeof(Word));
  return now == then;
}

// The elements that still hold their pattern, as indices into the dense tensor, in order.
template <class Word>
std::vector<std::int64_t> pattern_left(const PoisonedMemory& memory, const Placement& placement) {
  std::vector<std::int64_t> left;
  for_rows(placement, [&](std::int64_t offset, std::int64_t index, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      if (holds_pattern<Word>(memory, offset + i)) left.push_back(index + i);
  });
  return left;
}

std::vector<std::int64_t> pattern_left(const PoisonedMemory& memory, const Placement& placement, int size) {
  return size == 2 ? pattern_left<std::uint16_t>(memory, placement) : pattern_left<std::uint32_t>(memory, placement);
}

std::int64_t count_both(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return static_cast<std::int64_t>(both.size());
}

// Bytes that changed outside the elements. Puts the pattern back where the kernel may write; what then differs is not
// its own.
std::int64_t changed_outside(PoisonedMemory& memory, const Placement& placement, int size) {
  for_rows(placement, [&](std::int64_t offset, std::int64_t, std::int64_t count) {
    std::memcpy(memory.data() + offset * size, memory.remembered() + offset * size,
                static_cast<std::size_t>(count * size));
  });
  return memory.changed();
}

void append(RunReport& to, const RunReport& from) {
  for (const std::string& hazard : from.hazards)
    if (std::find(to.hazards.begin(), to.hazards.end(), hazard) == to.hazards.end()) to.hazards.push_back(hazard);
}

RunReport run_kernel(Kernel& kernel, const Case& c, const ForwardArgs& args) {
  try {
    return kernel.run(c, args);
  } catch (const InvalidInput&) {  // the user's, such as a plan that makes no kernel
    throw;
  } catch (const std::exception& error) {
    throw KernelThrew(error.what());
  } catch (...) {
    throw KernelThrew("an exception that is no std::exception");
  }
}

}  // namespace

void ForwardBuffers::reserve(const Case& c) {
  const Problem& p = c.problem;
  q_place_ = place({p.batch, p.seqlen_q, p.nheads, p.headdim}, c.layout);
  k_place_ = place({p.batch, p.seqlen_k, p.nheads_k, p.headdim}, c.layout);
  v_place_ = place({p.batch, p.seqlen_k, p.nheads_k, p.headdim_v}, c.layout);
  o_place_ = place({p.batch, p.seqlen_q, p.nheads, p.headdim_v}, c.layout);
  lse_place_ = place_dense({p.batch, p.nheads, p.seqlen_q, 1});
  element_bytes_ = bytes_of(p.dtype);

  // A tile is at most 128 tokens: that much is ours on either side, within reason, and as much of it as is cheap is
  // checked.
  constexpr std::size_t largest_margin = 32 << 10, largest_slack = 1 << 20;
  const auto make_room = [&](PoisonedMemory& memory, const Placement& place, int size, std::int64_t base_offset) {
    const auto tile = static_cast<std::size_t>(128 * place.row_stride * size);
    memory.reserve(static_cast<std::size_t>(place.span * size), static_cast<std::size_t>(base_offset * size),
                   std::min(tile, largest_margin), std::min(tile, largest_slack));
  };
  make_room(q_, q_place_, element_bytes_, c.layout.base_offset);
  make_room(k_, k_place_, element_bytes_, c.layout.base_offset);
  make_room(v_, v_place_, element_bytes_, c.layout.base_offset);
  make_room(o_, o_place_, element_bytes_, c.layout.base_offset);
  lse_.reserve(static_cast<std::size_t>(lse_place_.span) * sizeof(float), 0, 4096, 4096);
}

void ForwardBuffers::fill_outputs(bool flipped) {
  for (PoisonedMemory* memory : {&o_, &lse_}) {
    memory->fill_pattern(flipped);
    memory->remember();
  }
}

std::int64_t ForwardBuffers::take_out_of_bounds() {
  return q_.changed() + k_.changed() + v_.changed() + changed_outside(o_, o_place_, element_bytes_) +
         changed_outside(lse_, lse_place_, sizeof(float));
}

ForwardRun ForwardBuffers::run(Kernel& kernel, const Case& c, const Inputs& inputs) {
  reserve(c);
  lay_out(inputs.q, q_place_, c.problem.dtype, q_);
  lay_out(inputs.k, k_place_, c.problem.dtype, k_);
  lay_out(inputs.v, v_place_, c.problem.dtype, v_);
  fill_outputs(false);

  const auto ref = [](PoisonedMemory& memory, const Placement& place) {
    return TensorRef{memory.data(), place.batch_stride, place.row_stride, place.head_stride};
  };
  const bool offers_lse = kernel.capability().offers_lse;
  const ForwardArgs args{ref(q_, q_place_), ref(k_, k_place_), ref(v_, v_place_), ref(o_, o_place_),
                         reinterpret_cast<float*>(lse_.data())};

  ForwardRun run;
  run.report = run_kernel(kernel, c, args);
  run.outputs.o = gather(o_, o_place_, c.problem.dtype);
  const std::vector<std::int64_t> o_left = pattern_left(o_, o_place_, element_bytes_);
  std::vector<std::int64_t> lse_left;
  if (offers_lse) {
    run.outputs.lse = gather(lse_, lse_place_, Dtype::fp32);
    const double to_base_e = std::log(kernel.capability().lse_base);
    if (to_base_e != 1)
      for (double& value : run.outputs.lse->values) value *= to_base_e;
    lse_left = pattern_left(lse_, lse_place_, sizeof(float));
  }
  run.outputs.out_of_bounds = take_out_of_bounds();
  if (o_left.empty() && lse_left.empty()) return run;

  for (PoisonedMemory* memory : {&q_, &k_, &v_}) memory->restore();
  fill_outputs(true);
  append(run.report, run_kernel(kernel, c, args));
  run.outputs.unwritten_o = count_both(o_left, pattern_left(o_, o_place_, element_bytes_));
  if (offers_lse) run.outputs.unwritten_lse = count_both(lse_left, pattern_left(lse_, lse_place_, sizeof(float)));
  run.outputs.out_of_bounds = std::max(run.outputs.out_of_bounds, take_out_of_bounds());
  return run;
}

}  // namespace attest
