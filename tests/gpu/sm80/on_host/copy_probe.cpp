// The copies run on the host, a thread of the CTA after the other.
#include "copy_probe.h"

#include <utility>

#include "copies.cuh"

namespace attest::test {
namespace {

template <class Ins>
void copy(const KernelPlan& plan, Ins ins, Operand x, int slot, int row0, int limit) {
  emit_copy(plan, ins, copy_lanes(plan, ins, x), x, slot, row0, limit);
}

template <class Body>
void each_thread(const KernelPlan& plan, const Body& body) {
  for (threadIdx.x = 0; threadIdx.x < static_cast<unsigned>(plan.threads()); ++threadIdx.x) body();
}

}  // namespace

std::string unavailable(const KernelPlan& /*plan*/) { return ""; }

std::vector<std::uint8_t> run_tile_copy(const KernelPlan& plan, CopyWay way, Operand x, int slot, int row0, int limit,
                                        const std::vector<std::uint8_t>& from, std::int64_t row_bytes) {
  ptx::shared_memory.assign(plan.smem_bytes(), 0xee);
  sm80::Rows rows;
  rows.base = reinterpret_cast<const char*>(from.data());
  rows.row_bytes = row_bytes;
  each_thread(plan, [&] {
    if (way == CopyWay::none || way == CopyWay::whole)
      copy(plan, sm80::WideCopy<KernelPlan, false>(plan, rows, 0, x, row0, way == CopyWay::whole), x, slot, row0,
           limit);
    else if (way == CopyWay::ragged)
      copy(plan, sm80::WideCopy<KernelPlan, true>(plan, rows, 0, x, row0, true), x, slot, row0, limit);
    else
      copy(plan, sm80::GeneralCopy<KernelPlan>(plan, rows, 0), x, slot, row0, limit);
  });
  return std::exchange(ptx::shared_memory, {});
}

std::vector<std::uint8_t> run_tile_store(const KernelPlan& plan, int row0, int limit,
                                         const std::vector<std::uint8_t>& shared, std::size_t bytes,
                                         std::int64_t row_bytes) {
  ptx::shared_memory = shared;
  std::vector<std::uint8_t> out(bytes, 0xee);
  sm80::Rows rows;
  rows.base = reinterpret_cast<const char*>(out.data());
  rows.row_bytes = row_bytes;
  each_thread(plan, [&] {
    sm80::Store<KernelPlan> ins(plan, rows, 0);
    emit_store(plan, ins, row0, limit);
  });
  return out;
}

}  // namespace attest::test
