// Copies between global and shared memory, a granule a lane. Each is an `Ins` for emit_copy() or emit_store() in
// gpu/plan, so the addresses are the plan's.
#pragma once
#include "attest/ptx/cp_async.cuh"
#include "attest/ptx/shared.cuh"
#include "fragments.cuh"

namespace attest::sm80 {

/// One head of a tensor: its first row, or that of its first page.
struct Rows {
  const char* base = nullptr;
  std::int64_t row_bytes = 0;                  // from one row to the next
  std::int64_t head_bytes = 0;                 // from one head to the next, of Q and O
  const std::int32_t* pages = nullptr;         // of this batch entry; null: rows follow each other
  std::int64_t page_size = 0, page_bytes = 0;  // keys in a page, bytes from one page to the next
};

template <class Plan>
ATTEST_DEVICE const char* query_address(const Plan& plan, const Rows& rows, int row) {
  return rows.base + plan.query_offset(row, rows.row_bytes, rows.head_bytes);
}

template <class Plan>
ATTEST_DEVICE const char* row_address(const Plan& plan, const Rows& rows, int row) {
  if (rows.pages == nullptr) return rows.base + plan.offset(row, rows.row_bytes);
  const unsigned size = static_cast<unsigned>(rows.page_size), page = static_cast<unsigned>(row) / size;
  return rows.base + plan.page_offset(rows.pages[page], rows.page_bytes) +
         plan.offset(static_cast<unsigned>(row) % size, rows.row_bytes);
}

/// 16 bytes a lane, from rows that lie less than 2^31 bytes apart in a tile: a pointer of the lane's, to which passes
/// add constants. Zeros in place of columns that do not exist, and with `Ragged` of such rows too.
template <class Plan, bool Ragged>
struct WideCopy : LaneInstructions {
  const Plan& plan;
  std::uint32_t smem;
  std::int64_t row_bytes;
  const char* lane_base;
  bool go;
  ATTEST_DEVICE WideCopy(const Plan& p, const Rows& rows, std::uint32_t s, Operand x, int row0, bool there)
      : plan(p), smem(s), row_bytes(static_cast<std::uint32_t>(rows.row_bytes)), go(there) {
    const auto at = copy_lanes(plan, *this, x);
    lane_base = rows.base + plan.offset(row0, row_bytes) + (at.row * static_cast<std::uint32_t>(row_bytes) + at.byte);
  }
  ATTEST_DEVICE void copy(const Granule<Lanes>& g) {
    const std::uint32_t to = ((smem + g.smem) ^ g.smem_xor) + g.smem_add;
    const char* from = lane_base + plan.offset(g.pass_row0, row_bytes) + g.byte0;
    const int row = g.row0 + g.pass_row0 + static_cast<int>(g.row), byte = g.byte0 + static_cast<int>(g.byte);
    const bool there = (!Ragged || row < g.limit) && byte < g.row_bytes;
    if (plan.copy_kind == CopyKind::synchronous)
      ptx::copy_16_if(go, to, from, there);
    else
      ptx::copy_async_16_if(go, to, from, there);
  }
};

/// Any granule; 2 bytes go through registers. Tiles may have fewer rows than a pass.
template <class Plan>
struct GeneralCopy : LaneInstructions {
  const Plan& plan;
  const Rows& rows;
  std::uint32_t smem;
  ATTEST_DEVICE GeneralCopy(const Plan& p, const Rows& r, std::uint32_t s) : plan(p), rows(r), smem(s) {}
  ATTEST_DEVICE void copy(const Granule<Lanes>& g) {
    const int tile_row = g.pass_row0 + static_cast<int>(g.row), byte = g.byte0 + static_cast<int>(g.byte);
    if (tile_row >= g.tile_rows) return;
    const bool there = g.row0 + tile_row < g.limit && byte < g.row_bytes;
    const int at = g.row0 + tile_row;
    const char* from = rows.base;
    if (there) from = (g.operand == Operand::q ? query_address(plan, rows, at) : row_address(plan, rows, at)) + byte;
    const std::uint32_t to = ((smem + g.smem) ^ g.smem_xor) + g.smem_add;
    if (g.bytes == 16)
      ptx::copy_async_or_zero<16>(to, from, there);
    else if (g.bytes == 8)
      ptx::copy_async_or_zero<8>(to, from, there);
    else if (g.bytes == 4)
      ptx::copy_async_or_zero<4>(to, from, there);
    else
      ptx::store_shared_16(to, there ? *reinterpret_cast<const std::uint16_t*>(from) : std::uint16_t{0});
  }
};

/// Rows of O from shared memory.
template <class Plan>
struct Store : LaneInstructions {
  const Plan& plan;
  const Rows& rows;
  std::uint32_t smem;
  ATTEST_DEVICE Store(const Plan& p, const Rows& r, std::uint32_t s) : plan(p), rows(r), smem(s) {}
  ATTEST_DEVICE void store(const Granule<Lanes>& g) {
    const int tile_row = g.pass_row0 + static_cast<int>(g.row), byte = g.byte0 + static_cast<int>(g.byte);
    const bool there = tile_row < g.tile_rows && g.row0 + tile_row < g.limit && byte < g.row_bytes;
    char* to = const_cast<char*>(query_address(plan, rows, g.row0 + tile_row)) + byte;
    const std::uint32_t from = ((smem + g.smem) ^ g.smem_xor) + g.smem_add;
    if (g.bytes == 16)
      ptx::store_from_shared<16>(to, from, there);
    else if (g.bytes == 8)
      ptx::store_from_shared<8>(to, from, there);
    else if (g.bytes == 4)
      ptx::store_from_shared<4>(to, from, there);
    else
      ptx::store_from_shared<2>(to, from, there);
  }
};

}  // namespace attest::sm80
