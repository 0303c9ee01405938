// Calls FlashAttention 3's forward, as instrument.py has changed it, and writes what its CTAs noted down.
//
//     F="-std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a --expt-relaxed-constexpr --expt-extended-lambda
//        --use_fast_math -DNDEBUG -DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED -DCUTLASS_ENABLE_GDC_FOR_SM90
//        -I HOPPER -I CUTLASS/include"          # one at a time, a minute each
//     nvcc $F -DKERNEL=64\\,1\\,false -c instantiate.cu ...   64,1,true   128,1,true   128,2,false
//     nvcc $F -c fa3_clocks.cu; nvcc fa3_clocks.o KERNELS.o -o fa3_clocks -lcuda
//     ./fa3_clocks CALLS.csv CLOCKS.bin            # batch,nheads,nheads_k,seqlen,headdim,causal
//     ./fa3_clocks CALLS.csv                       # and flags: one call each of what variants.py has changed, for ncu
//
// CLOCKS.bin: for each call 8 int32 (the six columns, key tiles a CTA at most, CTAs), then int64: readings of each SM's
// clock as the global timer moves on (2 x 132 x 32 x {clock, ns}: before and after), then each CTA's words.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cutlass/numeric_types.h"
#include "flash.h"

namespace {

using Bf16 = cutlass::bfloat16_t;
constexpr size_t kShift = 3 << 12;  // bytes, of O where variants.py says so
constexpr int kShifted = 256;
constexpr int kWords = 16384, kFirst = 64, kSms = 132, kReadings = 32;

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "fa3_clocks: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

template <typename T>
T* allocate(size_t count) {
  T* data = nullptr;
  check(cudaMalloc(&data, count * sizeof(T)));
  check(cudaMemset(data, 0, count * sizeof(T)));
  return data;
}

// Sums of four uniform numbers: nearly normal, deviation 1.
__global__ void fill(Bf16* out, size_t count, unsigned seed) {
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    float sum = 0;
    unsigned x = static_cast<unsigned>(i) * 2654435761u ^ seed;
    for (int k = 0; k < 4; ++k) {
      x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
      sum += static_cast<float>(x) * 0x1p-32f;
    }
    out[i] = Bf16((sum - 2) * 1.7320508f);
  }
}

__global__ void read_clocks(long long* out) {
  if (threadIdx.x != 0) return;
  unsigned sm = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  for (int i = 0; i < kReadings; ++i) {
    unsigned long long before = 0, now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
    now = before;
    while (now == before) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    out[(sm * kReadings + i) * 2] = clock64(), out[(sm * kReadings + i) * 2 + 1] = static_cast<long long>(now);
  }
}

Flash_fwd_params parameters(const std::vector<int>& call) {
  const int64_t b = call[0], h = call[1], hk = call[2], s = call[3], d = call[4];
  Flash_fwd_params p;
  std::memset(&p, 0, sizeof p);
  Bf16 *q = allocate<Bf16>(b * s * h * d), *k = allocate<Bf16>(b * s * hk * d), *v = allocate<Bf16>(b * s * hk * d);
  fill<<<1024, 256>>>(q, b * s * h * d, 1), fill<<<1024, 256>>>(k, b * s * hk * d, 2);
  fill<<<1024, 256>>>(v, b * s * hk * d, 3);
  p.q_ptr = q, p.k_ptr = k, p.v_ptr = v, p.o_ptr = allocate<Bf16>(b * s * h * d + kShift);
  p.softmax_lse_ptr = allocate<float>(b * h * s), p.tile_count_semaphore = allocate<int>(1);
  p.q_row_stride = p.o_row_stride = h * d, p.k_row_stride = p.v_row_stride = hk * d;
  p.q_head_stride = p.k_head_stride = p.v_head_stride = p.o_head_stride = d, p.v_dim_stride = 1;
  p.q_batch_stride = p.o_batch_stride = s * h * d, p.k_batch_stride = p.v_batch_stride = s * hk * d;
  p.b = p.b_k = call[0], p.h = call[1], p.h_k = call[2], p.seqlen_q = p.seqlen_k = call[3];
  p.d = p.dv = p.d_rounded = p.dv_rounded = call[4];
  p.seqlen_q_rounded = p.seqlen_k_rounded = (call[3] + 127) / 128 * 128, p.total_q = p.total_k = call[0] * call[3];
  p.scale_softmax = 1 / std::sqrt(static_cast<float>(d)), p.p_dropout = p.rp_dropout = 1, p.p_dropout_in_uint8_t = 255;
  p.is_bf16 = true, p.is_causal = call[5] != 0, p.window_size_left = -1, p.window_size_right = p.is_causal ? 0 : -1;
  p.num_splits = 1, p.arch = 90, p.num_sm = kSms, p.head_swizzle = p.is_causal, p.varlen_sort_batches = true;
  return p;
}

void release(const Flash_fwd_params& p) {
  for (void* x : {p.q_ptr, p.k_ptr, p.v_ptr, p.o_ptr, p.softmax_lse_ptr, static_cast<void*>(p.tile_count_semaphore)})
    cudaFree(x);
}

}  // namespace

template <int, int, int, int, typename, typename, bool, bool, bool, bool, bool, bool, bool, bool, bool, bool>
void run_flash_fwd(Flash_fwd_params& params, cudaStream_t stream);

namespace {

template <int Headdim, int Cluster, bool Causal>
void run(Flash_fwd_params& p) {
  run_flash_fwd<90, Headdim, Headdim, Cluster, Bf16, Bf16, Causal, false, false, false, false, false, false, false,
                false, false>(p, nullptr);
}

void call_kernel(Flash_fwd_params& p) {
  if (p.d == 64)
    p.is_causal ? run<64, 1, true>(p) : run<64, 1, false>(p);
  else
    p.is_causal ? run<128, 1, true>(p) : run<128, 2, false>(p);
}

/// The rows of a file of calls, as many numbers of each as are asked for.
std::vector<std::vector<int>> calls_of(const char* file, size_t numbers) {
  std::ifstream in(file);
  std::vector<std::vector<int>> calls;
  std::string line, field;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::stringstream fields(line);
    calls.emplace_back();
    while (calls.back().size() < numbers && std::getline(fields, field, ',')) calls.back().push_back(std::stoi(field));
  }
  return calls;
}

/// One call each, with the flags of its seventh column.
int call_variants(const char* file) {
  for (const std::vector<int>& call : calls_of(file, 7)) {
    Flash_fwd_params p = parameters(call);
    const auto flags = static_cast<uintptr_t>(call.at(6));
    p.q_descale_ptr = reinterpret_cast<float*>(flags), p.seqused_q = reinterpret_cast<int*>(flags);
    void* const o = p.o_ptr;
    if (flags & kShifted) p.o_ptr = static_cast<char*>(o) + kShift;
    check(cudaDeviceSynchronize());
    call_kernel(p);
    check(cudaDeviceSynchronize());
    p.o_ptr = o;
    release(p);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) return call_variants(argv[1]);
  if (argc != 3) return 2;
  std::FILE* out = std::fopen(argv[2], "wb");
  constexpr int smem = 200 * 1024;  // so that every SM has one CTA of read_clocks
  check(cudaFuncSetAttribute(read_clocks, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  const size_t other = size_t{128} << 20, readings = size_t{kSms} * kReadings * 2;
  Bf16* const displaces = allocate<Bf16>(other);
  auto* const clocks = allocate<long long>(2 * readings);
  auto* const log = allocate<long long>(size_t{kSms} * kWords);
  for (const std::vector<int>& call : calls_of(argv[1], 6)) {
    Flash_fwd_params p = parameters(call);
    p.q_descale_ptr = reinterpret_cast<float*>(log);
    std::vector<long long> seen(2 * readings), words(size_t{kSms} * kWords);
    for (int repeat = 0; repeat < 2; ++repeat) {  // the second is kept
      check(cudaMemset(p.tile_count_semaphore, 0, 4));
      check(cudaMemset(log, 0, words.size() * 8));
      fill<<<1024, 256>>>(displaces, other, 5);
      check(cudaDeviceSynchronize());
      read_clocks<<<kSms, 32, smem>>>(clocks);
      call_kernel(p);
      read_clocks<<<kSms, 32, smem>>>(clocks + readings);
      check(cudaDeviceSynchronize());
      check(cudaMemcpy(seen.data(), clocks, seen.size() * 8, cudaMemcpyDeviceToHost));
      check(cudaMemcpy(words.data(), log, words.size() * 8, cudaMemcpyDeviceToHost));
    }
    int tiles = 0;
    for (size_t i = 0; i < words.size(); ++i)
      if (i % kWords >= kFirst && words[i] != 0)
        tiles = std::max(tiles, (static_cast<int>(i % kWords) - kFirst) / 4 + 1);
    const int head[8] = {call[0], call[1], call[2], call[3], call[4], call[5], tiles, kSms};
    std::fwrite(head, 4, 8, out), std::fwrite(seen.data(), 8, seen.size(), out);
    for (int cta = 0; cta < kSms; ++cta)
      std::fwrite(&words[size_t(cta) * kWords], 8, static_cast<size_t>(kFirst + 4 * tiles), out);
    release(p);
  }
  return std::fclose(out);
}
