// What L2 counts of rows that end or begin within a sector, copied as FlashAttention 2 copies K and V. CSV to standard
// output.
//
//     row_sectors > docs/results/h200-l2/row_sectors.csv
//
// A CTA of four warps an SM copies rows that nobody has copied before by cp.async of 16 bytes a lane with L2::128B: all
// warps of a row's first part of so many lanes, then of the next; of the last one some lanes may have nothing to copy.
// Columns: lanes a part, chunks of 16 bytes a row, bytes from a row to the next, bytes before the first row, CTAs, rows
// of all CTAs, and what was counted.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "attest/counters/counter_reader.h"
#include "attest/hardware/device.h"

namespace attest::hardware {
namespace {

constexpr int kThreads = 128, kRows = 64, kTurns = 8;
constexpr int kCopies = 8;  // a thread and turn, of rows of 256 bytes
constexpr std::size_t kBytes = std::size_t{64} << 20;

struct Copies {
  int lanes, chunks, row_bytes, before, ctas;
};

__global__ void __launch_bounds__(kThreads) go(Copies c, const std::uint8_t* rows) {
  extern __shared__ __align__(16) std::uint8_t smem[];
  const auto first = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem)) + 16 * threadIdx.x;
  const int lane = threadIdx.x % c.lanes, row = threadIdx.x / c.lanes, rows_a_pass = kThreads / c.lanes;
  const std::int64_t a_turn = std::int64_t{c.row_bytes} * kRows;
  rows += c.before + std::int64_t{blockIdx.x} * a_turn * kTurns;
  for (int turn = 0; turn < kTurns; ++turn, rows += a_turn) {
    std::uint32_t to = first;  // a place of its own for each copy: of those to one place some are left out
    for (int pass = 0; pass < kRows / rows_a_pass; ++pass)
      for (int part = 0; part * c.lanes < c.chunks; ++part, to += 16 * kThreads) {
        const int chunk = part * c.lanes + lane;
        if (chunk >= c.chunks) continue;
        const std::uint8_t* const from = rows + std::int64_t{pass * rows_a_pass + row} * c.row_bytes + 16 * chunk;
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
      }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
  }
}

class Work : public CountedWork {
 public:
  Work(const Copies& copies, const std::uint8_t* rows) : copies_(copies), rows_(rows) {}
  void launch() override {
    go<<<copies_.ctas, kThreads, kCopies * 16 * kThreads>>>(copies_, rows_);
    check(cudaGetLastError());
  }
  void wait() override { check(cudaDeviceSynchronize()); }
  void empty_l2() override { check(cudaMemset(others_.data(), 1, kOthers)); }

 private:
  static constexpr std::size_t kOthers = std::size_t{256} << 20;
  Copies copies_;
  const std::uint8_t* rows_;
  DeviceArray<std::uint8_t> others_{kOthers};
};

void measure() {
  const std::vector<std::string> counters = {"l1tex__m_xbar2l1tex_read_bytes.sum",
                                             "lts__t_sectors_srcunit_tex_op_read.sum",
                                             "lts__t_requests_srcunit_tex_op_read.sum"};
  const DeviceArray<std::uint8_t> buffer(kBytes);
  CounterReader reader(counters);
  std::printf("lanes,chunks,row_bytes,before,ctas,rows");
  for (const std::string& name : counters) std::printf(",%s", name.c_str());
  std::printf("\n");
  const auto count = [&](const Copies& copies) {
    Work work(copies, buffer.data());
    const LaunchCounters counted = reader.read(work, false).at(0);
    std::printf("%d,%d,%d,%d,%d,%d", copies.lanes, copies.chunks, copies.row_bytes, copies.before, copies.ctas,
                copies.ctas * kTurns * kRows);
    for (const std::string& name : counters) std::printf(",%.0f", counted.values.at(name));
    std::printf("\n");
  };
  for (const int lanes : {4, 8, 16})
    for (int chunks = 1; chunks <= 16; ++chunks)
      for (const int begin : {0, 16, 32, 48, 64, 80, 96, 112})  // of each row, in its line
        count({lanes, chunks, 512, begin, 132});
}

}  // namespace
}  // namespace attest::hardware

int main() { return attest::hardware::run("row_sectors", &attest::hardware::measure); }
