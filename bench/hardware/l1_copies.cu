// Words of local memory beside rows that pass through L1, by where the rows lie and how fast they come. CSV to standard
// output.
//
//     l1_copies > docs/results/h200-l1/copies.csv
//
// Each warp of a CTA goes through turns: it copies its part of 64 rows of K and of V that nobody has copied before, 256
// bytes of each row, then loads nine words of its frame and stores four of them, as gpu/sm80's general kernel does.
// Columns: bytes a lane copies, bytes from a row to the next, heads that lie beside each other in it (each CTA has one,
// the next batch entry where they are used up), the address of the first row of K, bytes from there to V, cycles that a
// warp waits behind each copy, or `landed`: until it is there; CTAs an SM, and what was counted.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "attest/counters/counter_reader.h"
#include "attest/hardware/device.h"

namespace attest::hardware {
namespace {

constexpr int kWarps = 4, kRows = 64, kRowBytes = 256, kTurns = 32, kWords = 36;
constexpr std::size_t kBytes = std::size_t{8} << 30;
constexpr std::uint32_t kNever = 0x9e3779b9;

struct Copies {
  int heads, row_bytes, wait;  // wait < 0: until a copy has landed
  std::int64_t apart;
  int ctas_an_sm;
};

__device__ void store(std::uint32_t at, std::uint32_t x) {
  asm volatile("st.local.u32 [%0], %1;" ::"r"(at), "r"(x) : "memory");
}
__device__ std::uint32_t load(std::uint32_t at) {
  std::uint32_t x;
  asm volatile("ld.local.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
  return x;
}

/// Of each eight rows a warp has two; `lane_bytes` a lane, 16 lanes a row.
template <int lane_bytes>
__device__ void copy_tile(const std::uint8_t* rows, const Copies& c, std::uint32_t to) {
  const int lane = threadIdx.x % 32, row = threadIdx.x / 16;
  constexpr int panel = 16 * lane_bytes, rows_a_pass = 2 * kWarps;
  for (int pass = 0; pass < kRows / rows_a_pass; ++pass)
    for (int byte = 0; byte < kRowBytes; byte += panel) {
      const std::uint8_t* const from =
          rows + std::int64_t{pass * rows_a_pass + row} * c.row_bytes + byte + lane % 16 * lane_bytes;
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(lane_bytes) : "memory");
      if (c.wait < 0) asm volatile("cp.async.wait_all;" ::: "memory");
      const long long began = clock64();
      while (clock64() - began < c.wait) {
      }
    }
}

template <int lane_bytes>
__global__ void __launch_bounds__(32 * kWarps, 2) go(Copies c, const std::uint8_t* keys, std::uint32_t* sink) {
  extern __shared__ __align__(16) std::uint8_t smem[];
  std::uint32_t words[kWords];
  const auto first = static_cast<std::uint32_t>(__cvta_generic_to_local(words));
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem)) + 16 * threadIdx.x;
  const std::int64_t a_turn = std::int64_t{c.row_bytes} * kRows;
  const std::uint8_t* rows =
      keys + std::int64_t{blockIdx.x} % c.heads * kRowBytes + std::int64_t{blockIdx.x} / c.heads * a_turn * kTurns;
  std::uint32_t sum = 0;
  for (int word = 0; word < kWords; ++word) store(first + 4 * word, word);
  for (int turn = 0; turn < kTurns; ++turn, rows += a_turn) {
    __syncthreads();
    copy_tile<lane_bytes>(rows, c, to);
    copy_tile<lane_bytes>(rows + c.apart, c, to);
#pragma unroll
    for (const int word : {21, 2, 3, 6, 4, 17, 18, 19, 20}) sum ^= load(first + 4 * word);
#pragma unroll
    for (const int word : {17, 18, 19, 20}) store(first + 4 * word, sum);
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
  if (sum == kNever) *sink = sum;
}

class Work : public CountedWork {
 public:
  Work(int lane_bytes, const Copies& copies, const std::uint8_t* keys, std::uint32_t* sink)
      : kernel_(lane_bytes == 8 ? go<8> : go<16>), copies_(copies), keys_(keys), sink_(sink) {
    check(cudaDeviceGetAttribute(&sms_, cudaDevAttrMultiProcessorCount, 0));
    check(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
    check(cudaFuncSetAttribute(kernel_, cudaFuncAttributePreferredSharedMemoryCarveout, 100 * 196 / 228));
  }
  void launch() override {
    kernel_<<<sms_ * copies_.ctas_an_sm, 32 * kWarps, kSmem>>>(copies_, keys_, sink_);
    check(cudaGetLastError());
  }
  void wait() override { check(cudaDeviceSynchronize()); }
  void empty_l2() override { check(cudaMemset(others_.data(), 1, kOthers)); }

 private:
  static constexpr int kSmem = 97 << 10;  // two CTAs take 196 KiB with what is reserved
  static constexpr std::size_t kOthers = std::size_t{256} << 20;
  void (*kernel_)(Copies, const std::uint8_t*, std::uint32_t*);
  Copies copies_;
  const std::uint8_t* keys_;
  std::uint32_t* sink_;
  int sms_ = 0;
  DeviceArray<std::uint8_t> others_{kOthers};
};

void measure() {
  const std::vector<std::string> counters = {"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
                                             "l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_miss.sum",
                                             "l1tex__m_xbar2l1tex_read_bytes.sum", "sm__cycles_elapsed.max"};
  const DeviceArray<std::uint8_t> buffer(kBytes);
  const DeviceArray<std::uint32_t> sink(1);
  CounterReader reader(counters);
  std::printf("lane_bytes,row_bytes,heads,first_byte,apart,wait,ctas_an_sm");
  for (const std::string& name : counters) std::printf(",%s", name.c_str());
  std::printf("\n");
  constexpr std::int64_t mib = 1 << 20;
  const struct {
    int lane_bytes, heads, gap;
  } rows[] = {{16, 1, 0}, {16, 4, 0}, {16, 16, 0}, {8, 4, 8}, {8, 16, 8}, {8, 1, 8}};
  for (const auto& [lane_bytes, heads, gap] : rows)
    for (const std::int64_t apart : {256 * mib, 258 * mib, 272 * mib, 1024 * mib, 3072 * mib, 3590 * mib})
      for (const int wait : {-1, 150, 0})
        for (const int ctas_an_sm : {1, 2}) {
          const Copies copies{heads, heads * kRowBytes + gap, wait, apart, ctas_an_sm};
          Work work(lane_bytes, copies, buffer.data(), sink.data());
          const LaunchCounters counted = reader.read(work, false).at(0);
          std::printf("%d,%d,%d,%llu,%lld,%s,%d", lane_bytes, copies.row_bytes, heads,
                      static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(buffer.data())),
                      static_cast<long long>(apart), wait < 0 ? "landed" : std::to_string(wait).c_str(), ctas_an_sm);
          for (const std::string& name : counters) std::printf(",%.0f", counted.values.at(name));
          std::printf("\n");
        }
}

}  // namespace
}  // namespace attest::hardware

int main() { return attest::hardware::run("l1_copies", &attest::hardware::measure); }
