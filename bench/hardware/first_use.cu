// What a warp waits for where it first uses a kernel's arguments, code or data that other SMs have written: CSV on
// standard output.
//
//     first_use > docs/results/h200-sm/first_use.csv
//
// A row a launch, one warp a CTA: how many arguments of 4 bytes are used one after the other, `stride` bytes apart; how
// many instructions of 16 bytes, in a row or in blocks of `stride` of which every second is jumped over; how many lines
// are loaded together, each of another page. Before a launch 256 MiB are written, which leaves nothing else in L2, but
// where lines are to be there. Cycles of the first time through and of the second, the mean and the most of the CTAs;
// of lines, those of a group.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <vector>

#include "attest/hardware/device.h"
#include "attest/hardware/memory.h"

namespace {

using namespace attest::hardware;

constexpr int kWords = 1000, kFirst = 32;  // arguments, and where those used begin, off the ones that all launches have

struct Arguments {
  long long* cycles;
  std::uint32_t* sink;
  std::uint32_t words[kWords];
};

template <int Uses, int Stride>
__global__ void use_arguments(const __grid_constant__ Arguments p) {
  std::uint32_t x = p.words[0];
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {
    const long long began = clock64();
#pragma unroll
    for (int i = 0; i < Uses; ++i) {  // all words are 0, but which comes next hangs on the one before
      x = p.words[kFirst + i * Stride / 4 + x];
      asm volatile("" : "+r"(x));
    }
    if (x != 0) return;  // waits for the last one
    const long long took = clock64() - began;
    if (threadIdx.x == 0) p.cycles[2 * blockIdx.x + pass] = took;
  }
  p.sink[threadIdx.x] = x;
}

template <int Uses>
__global__ void use_code(const __grid_constant__ Arguments p) {
  float x = static_cast<float>(threadIdx.x);
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {
    const long long began = clock64();
#pragma unroll
    for (int i = 0; i < Uses; ++i) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
    const long long took = clock64() - began;
    if (threadIdx.x == 0) p.cycles[2 * blockIdx.x + pass] = took;
  }
  p.sink[threadIdx.x] = __float_as_uint(x);
}

/// After each `Block` instructions a branch is taken over as many.
template <int Uses, int Block>
__global__ void use_code_in_blocks(const __grid_constant__ Arguments p) {
  float x = static_cast<float>(threadIdx.x);
  const bool never = p.words[0] != 0;
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {
    const long long began = clock64();
#pragma unroll
    for (int i = 0; i < Uses / Block; ++i) {
#pragma unroll
      for (int j = 0; j < Block; ++j) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
      if (never) {
#pragma unroll
        for (int j = 0; j < Block; ++j) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
      }
    }
    const long long took = clock64() - began;
    if (threadIdx.x == 0) p.cycles[2 * blockIdx.x + pass] = took;
  }
  p.sink[threadIdx.x] = __float_as_uint(x);
}

void sweep_l2() {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  static const DeviceArray<std::uint8_t> swept(bytes);
  check(cudaMemset(swept.data(), 0, bytes));
}

void print(const char* what, int uses, int stride, void (*kernel)(Arguments)) {
  for (const int ctas : {1, 64, 132}) {
    const DeviceArray<long long> cycles(2 * static_cast<std::size_t>(ctas));
    const DeviceArray<std::uint32_t> sink(32);
    for (int repeat = 0; repeat < 3; ++repeat) {
      sweep_l2();
      Arguments p{cycles.data(), sink.data(), {}};
      kernel<<<ctas, 32>>>(p);
      check(cudaDeviceSynchronize());
      const std::vector<long long> took = cycles.download();
      std::printf("%s,%d,%d,%d,%d", what, uses, stride, ctas, repeat);
      for (const std::size_t pass : {0, 1}) {
        double sum = 0, most = 0;
        for (std::size_t i = pass; i < took.size(); i += 2) {
          sum += static_cast<double>(took[i]);
          most = std::max(most, static_cast<double>(took[i]));
        }
        std::printf(",%.0f,%.0f", sum / ctas, most);
      }
      std::printf("\n");
    }
  }
}

template <int Stride>
void print_arguments() {
  print("arguments", 1, Stride, use_arguments<1, Stride>);
  print("arguments", 2, Stride, use_arguments<2, Stride>);
  print("arguments", 4, Stride, use_arguments<4, Stride>);
  print("arguments", 8, Stride, use_arguments<8, Stride>);
  print("arguments", 12, Stride, use_arguments<12, Stride>);
}

void print_lines(const char* what, bool in_l2) {
  constexpr int apart_bytes = 4096 + 128;
  int repeat = 0;
  for (const LinesTogether& row : lines_together(in_l2, {1, 32, 128}))
    std::printf("%s,%d,%d,%d,%d,%.0f,%.0f,,\n", what, row.lines, apart_bytes, row.ctas, repeat++ % 3, row.mean,
                row.most);
}

}  // namespace

int main() {
  try {
    std::printf("what,uses,stride,ctas,repeat,first,first_most,again,again_most\n");
    print_arguments<4>(), print_arguments<32>(), print_arguments<64>(), print_arguments<128>(), print_arguments<256>();
    print_lines("lines in L2", true), print_lines("lines in DRAM", false);
    print("code", 32, 16, use_code<32>);
    print("code", 128, 16, use_code<128>);
    print("code", 256, 16, use_code<256>);
    print("code", 512, 16, use_code<512>);
    print("code", 1024, 16, use_code<1024>);
    print("code", 2048, 16, use_code<2048>);
    print("jumps", 256, 32, use_code_in_blocks<256, 32>);
    print("jumps", 512, 32, use_code_in_blocks<512, 32>);
    print("jumps", 1024, 32, use_code_in_blocks<1024, 32>);
    print("jumps", 256, 64, use_code_in_blocks<256, 64>);
    print("jumps", 512, 64, use_code_in_blocks<512, 64>);
    print("jumps", 1024, 64, use_code_in_blocks<1024, 64>);
    print("jumps", 512, 128, use_code_in_blocks<512, 128>);
    print("jumps", 1024, 128, use_code_in_blocks<1024, 128>);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "first_use: %s\n", error.what());
    return 1;
  }
  return 0;
}
