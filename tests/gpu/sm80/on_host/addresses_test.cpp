// Addresses of rows that the device makes, beyond 32 bits of elements and of bytes, against sums in wider numbers.
#include <gtest/gtest.h>

#include "forward_ops.cuh"
#include "launch_config.h"

namespace attest {
namespace {

using Config = test::HostConfig<Sm80Tile::d128, Sm80Kind::general>;
constexpr std::int64_t batch_stride = (std::int64_t{1} << 40) + 8, row_stride = (std::int64_t{1} << 22) + 16,
                       head_stride = (std::int64_t{1} << 33) + 24;
constexpr int element_bytes = 2;

// Nothing is read: a base far below what lies above it.
const char* base() { return reinterpret_cast<const char*>(std::uintptr_t{1} << 20); }
TensorRef tensor() { return {const_cast<char*>(base()), batch_stride, row_stride, head_stride}; }
std::int64_t bytes_from_base(const char* p) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(base()));
}

struct Place {
  std::int64_t batch, head;
  int row;
};
constexpr Place places[] = {{0, 0, 0}, {0, 0, (1 << 26) - 1}, {3, 0, 513}, {5, 63, 1 << 20}, {4095, 127, 1 << 25}};

TEST(DeviceAddresses, OfRowsThatFollowEachOther) {
  const Config::Plan plan(Config::plan, {});
  for (const auto& [batch, head, row] : places) {
    const sm80::Rows rows = sm80::head_rows(plan, tensor(), element_bytes, nullptr, batch, head);
    const std::int64_t expected = (batch * batch_stride + head * head_stride + row * row_stride) * element_bytes;
    EXPECT_EQ(bytes_from_base(sm80::row_address(plan, rows, row)), expected) << row;
    EXPECT_EQ(bytes_from_base(sm80::query_address(plan, rows, row)), expected) << row;
  }
}

TEST(DeviceAddresses, OfAPackedBatchEntry) {
  const Config::Plan plan(Config::plan, {});
  const std::int32_t cu_seqlens[] = {0, 1 << 10, 1 << 25};
  TensorRef t = tensor();
  t.batch_stride = 0;
  const sm80::Rows rows = sm80::head_rows(plan, t, element_bytes, cu_seqlens, 2, 3);
  EXPECT_EQ(bytes_from_base(sm80::row_address(plan, rows, 7)),
            (((std::int64_t{1} << 25) + 7) * row_stride + 3 * head_stride) * element_bytes);
}

TEST(DeviceAddresses, OfPages) {
  const Config::Plan plan(Config::plan, {});
  constexpr std::int64_t per_sequence = 5, page_size = 48;
  const std::int32_t table[] = {0, 0, 0, 0, 0, 70'000, 3, 1 << 20, 9, 11};  // of two sequences
  ForwardArgs args;
  args.page_table = table, args.pages_per_sequence = per_sequence, args.page_size = page_size;
  const sm80::Rows rows = sm80::key_rows(plan, tensor(), args, 1, 2);
  for (const int row : {0, 47, 48, 100, 143, 239})
    EXPECT_EQ(bytes_from_base(sm80::row_address(plan, rows, row)),
              (table[per_sequence + row / page_size] * batch_stride + 2 * head_stride + row % page_size * row_stride) *
                  element_bytes)
        << row;
}

TEST(DeviceAddresses, OfPackedHeads) {
  sm80::ForwardParams params;
  params.launch.packed_heads = 6;
  const Config::Plan plan(Config::plan, params);
  for (const auto& [batch, head, row] : places) {
    const sm80::Rows rows = sm80::head_rows(plan, tensor(), element_bytes, nullptr, batch, head);
    EXPECT_EQ(bytes_from_base(sm80::query_address(plan, rows, row)),
              (batch * batch_stride + (head + row % 6) * head_stride + row / 6 * row_stride) * element_bytes)
        << row;
  }
}

// A lane's pointer into a tile: 32 bits within it, 64 to where it begins.
TEST(DeviceAddresses, OfALaneOfAWideCopy) {
  const Config::Plan plan(Config::plan, {});
  for (const int row0 : {0, 64, (1 << 26) - 64})
    for (const int thread : {0, 1, 37, 127}) {
      threadIdx.x = static_cast<unsigned>(thread);
      const sm80::Rows rows = sm80::head_rows(plan, tensor(), element_bytes, nullptr, 3, 2);
      const sm80::WideCopy<Config::Plan, true> ins(plan, rows, 0, Operand::k, row0, true);
      const int lanes = plan.copy_lanes(Operand::k);
      EXPECT_EQ(bytes_from_base(ins.lane_base),
                (3 * batch_stride + 2 * head_stride + (row0 + thread / lanes) * row_stride) * element_bytes +
                    thread % lanes * 16)
          << row0 << " " << thread;
    }
}

}  // namespace
}  // namespace attest
