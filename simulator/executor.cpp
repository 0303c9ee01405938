#include "attest/simulator/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "attest/simulator/tile_math.h"
#include "rows.h"

namespace attest {

namespace {
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
}

Workspace::Workspace(std::int64_t rows, int headdim_v)
    : columns(headdim_v),
      o(static_cast<std::size_t>(rows) * static_cast<std::size_t>(headdim_v), nan),
      lse(static_cast<std::size_t>(rows), nan) {}

void Workspace::forget() {
  std::fill(o.begin(), o.end(), nan);
  std::fill(lse.begin(), lse.end(), nan);
}

Executor::Executor(const Behaviour& behaviour, Dtype dtype)
    : behaviour_(behaviour), plan_(behaviour.plan()), dtype_(dtype) {
  for (const Operand x : {Operand::q, Operand::k, Operand::v}) {
    auto& slots = smem_[static_cast<std::size_t>(x)];
    slots.resize(static_cast<std::size_t>(x == Operand::q ? 1 : plan_.stages));
    for (auto& tile : slots) tile.resize(std::size_t(plan_.rows(x)) * std::size_t(plan_.columns(x)));
  }
  warps_.resize(static_cast<std::size_t>(plan_.num_warps));
  const auto rows = static_cast<std::size_t>(plan_.rows_per_warp());
  for (Warp& warp : warps_) {
    warp.scores.resize(rows * static_cast<std::size_t>(plan_.tile_n));
    warp.output.resize(rows * static_cast<std::size_t>(plan_.columns(Operand::v)));
    warp.max.resize(rows);
    warp.lse.resize(rows);
    warp.sums.resize(rows);
    if (plan_.num_splits > 1) warp.weights.resize(rows * static_cast<std::size_t>(plan_.num_splits));
  }
  bias_.resize(static_cast<std::size_t>(plan_.tile_n));
}

void Executor::run(const Program& program, const Cta& cta) {
  if (is_empty(program)) return;
  program_ = &program;
  cta_ = &cta;
  set_scale();
  for (auto& slots : smem_)
    for (auto& tile : slots) std::fill(tile.begin(), tile.end(), nan);
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp.row0 = program.work.q_tile * plan_.tile_m + static_cast<int>(w) * plan_.rows_per_warp();
    warp.rows = std::clamp(program.work.seqlen_q - warp.row0, 0, plan_.rows_per_warp());
    warp.copies.clear();
  }
  run_warps(program, [this](const auto& step, int w) { execute(step, w); });
}

void Executor::execute(const Step& step, int w) {
  Warp& warp = warps_[static_cast<std::size_t>(w)];
  switch (step.kind) {
    case Step::Kind::clear:
      return clear(warp);
    case Step::Kind::copy: {
      const Copy copy{step.operand, step.slot, step.row0, step.limit};
      if (plan_.copy_bytes(step.operand) < 4) return land(copy, w);  // through registers
      each_row(copy, w, [&](float* row, int) { std::fill_n(row, plan_.columns(copy.operand), nan); });
      warp.copies.add(copy);
      return;
    }
    case Step::Kind::commit:
      return warp.copies.commit();
    case Step::Kind::wait:
      return warp.copies.wait(step.slot, [this, w](const Copy& copy) { land(copy, w); });
    case Step::Kind::scores:
      return scores(step, w);
    case Step::Kind::modify:
      return modify(step, warp);
    case Step::Kind::mask:
      return mask(step, warp);
    case Step::Kind::softmax:
      return softmax(warp);
    case Step::Kind::output:
      return output(step, warp);
    case Step::Kind::finish:
      return finish(warp);
    case Step::Kind::store:
      return store(step, warp);
    case Step::Kind::store_partial:
      return store_partial(step, warp);
    case Step::Kind::weigh:
      return weigh(warp);
    case Step::Kind::add_partial:
      return add_partial(step, warp);
    case Step::Kind::store_combined:
      write_lse(behaviour_.combine_place(cta_->place), warp);
      return store(step, warp);
    case Step::Kind::acquire:
    case Step::Kind::await:
    case Step::Kind::release:
    case Step::Kind::next_tile:
    case Step::Kind::stage_probabilities:
      throw std::logic_error("no warp-specialised plan runs on the CPU");
    case Step::Kind::barrier:
    case Step::Kind::warp_barrier:
    case Step::Kind::load_query:
    case Step::Kind::stage:
      return;
  }
}

// The rows of a tile that this warp copies: a pass is copy_rows() rows, of which each warp has 32 / copy_lanes().
template <class F>
void Executor::each_row(const Copy& copy, int w, F f) {
  const int pass = plan_.copy_rows(copy.operand), mine = 32 / plan_.copy_lanes(copy.operand);
  const int columns = plan_.columns(copy.operand), tile_rows = plan_.rows(copy.operand);
  float* tile = slot(copy.operand, copy.slot);
  for (int first = w * mine; first < tile_rows; first += pass)
    for (int row = first; row < std::min(first + mine, tile_rows); ++row) f(row_of(tile, row, columns), row);
  if (!behaviour_.guards_tile_rows() && tile_rows % pass != 0)
    faults_.insert("a tile is copied past its slot of shared memory");
}

// Where a row lies, in elements from the tensor's first; -1 where it does not exist.
std::int64_t Executor::offset_of(const HeadView& view, std::int64_t row) {
  if (view.pages == nullptr)
    return row < view.rows ? view.offset + behaviour_.offset(row, view.row_stride) : std::int64_t{-1};
  const std::int64_t page = row / view.page_size;
  if (page >= view.num_pages) {
    faults_.insert("the page table is read past the end of its row");
    return -1;
  }
  return view.offset + behaviour_.page_offset(view.pages[page], view.page_stride) +
         behaviour_.offset(row % view.page_size, view.row_stride);
}

// Likewise of a row of Q, which packed heads share.
std::int64_t Executor::query_offset_of(const HeadView& view, int row) {
  if (row / plan_.packed_heads >= view.rows) return -1;
  return view.offset + behaviour_.query_offset(row, view.row_stride, view.head_stride);
}

// A copy faults where its granule does not divide the address.
void Executor::check_address(Operand x, const std::uint8_t* address) {
  if (reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(behaviour_.copy_bytes(x)) != 0)
    faults_.insert(fmt::format("{} is accessed at a misaligned address", to_string(x)));
}

void Executor::land(const Copy& copy, int w) {
  const HeadView& view = copy.operand == Operand::q ? cta_->q : copy.operand == Operand::k ? cta_->k : cta_->v;
  const int columns = plan_.columns(copy.operand), asked = std::min(behaviour_.column_limit(copy.operand), columns);
  const int there = std::min(asked, view.columns);
  const float past_limit = behaviour_.zero_fills(copy.operand) ? 0.0f : nan;
  each_row(copy, w, [&](float* row, int r) {
    const int at = copy.row0 + r;
    if (at >= copy.limit) {
      std::fill_n(row, columns, past_limit);
      return;
    }
    const std::int64_t offset = copy.operand == Operand::q ? query_offset_of(view, at) : offset_of(view, at);
    if (offset >= 0 && offset + there <= view.span) {
      check_address(copy.operand, view.base + offset * plan_.element_bytes);
      tile_math::load(dtype_, view.base + offset * plan_.element_bytes, there, row);
    } else
      std::fill_n(row, there, nan);
    std::fill(row + there, row + asked, nan);
    std::fill(row + asked, row + columns, 0.0f);
  });
}

void Executor::write_lse(const HeadPlace& place, const Warp& warp) {
  if (warp.rows == 0) return;
  const std::int64_t row0 = behaviour_.lse_row(place), stride = behaviour_.lse_stride(place);
  for (int r = 0; r < warp.rows; ++r) {
    const std::int64_t at = row0 + behaviour_.lse_offset(place, warp.row0 + r, stride);
    if (at >= 0 && at < cta_->lse_span)
      cta_->lse[at] = warp.lse[static_cast<std::size_t>(r)];
    else
      faults_.insert("LSE is written past its end");
  }
}

void Executor::store(const Step& step, const Warp& warp) {
  const HeadView& o = cta_->o;
  const int columns = plan_.columns(Operand::o), written = std::min(behaviour_.column_limit(Operand::o), columns);
  for (int r = 0; r < plan_.rows_per_warp() && warp.row0 + r < step.limit; ++r) {
    const std::int64_t offset = o.offset + behaviour_.query_offset(warp.row0 + r, o.row_stride, o.head_stride);
    std::uint8_t* address = o.base + offset * plan_.bytes(Operand::o);
    if (offset < 0 || offset >= o.span + o.row_stride) {  // of a row past the end the memory shows it
      faults_.insert("O is written past its end");
      continue;
    }
    check_address(Operand::o, address);
    tile_math::store(output_dtype(dtype_), row_of(warp.output.data(), r, columns), written, address);
  }
}

// Row of the workspace, or -1 outside it.
std::int64_t Executor::partial_row(const HeadPlace& at, int split, int row) {
  const std::int64_t index = behaviour_.partial_row(at, split) + row;
  if (index >= 0 && index < static_cast<std::int64_t>(cta_->workspace->lse.size())) return index;
  faults_.insert("the workspace of splits is accessed past its end");
  return -1;
}

void Executor::store_partial(const Step& step, const Warp& warp) {
  Workspace& space = *cta_->workspace;
  const int columns = plan_.columns(Operand::o);
  for (int r = 0; r < warp.rows && warp.row0 + r < step.limit; ++r) {
    const std::int64_t at = partial_row(cta_->place, program_->work.split, warp.row0 + r);
    if (at < 0) return;
    space.lse[static_cast<std::size_t>(at)] = warp.lse[static_cast<std::size_t>(r)];
    std::copy_n(row_of(warp.output.data(), r, columns), std::min(columns, space.columns),
                space.o.begin() + at * space.columns);
  }
}

}  // namespace attest
