#include <algorithm>
#include <stdexcept>

#include "attest/hardware/contention.h"
#include "attest/hardware/device.h"
#include "attest/hardware/key_tile.cuh"
#include "attest/hardware/wgmma.h"

namespace attest::hardware {
namespace {

enum class Part { maxima, exponentials, sums, packing, rescaling, one_by_one, mixed };
constexpr const char* kPartNames[] = {"maxima", "exponentials", "sums", "packing", "rescaling", "one_by_one", "mixed"};

constexpr int kFetched = 2, kBegin = 4000;  // rounds that fetch code; cycles after products have begun
/// Rounds that are timed, of a whole softmax, its exponentials, or what is short beside a batch of products.
template <Part P>
constexpr int kRounds = P == Part::exponentials || P == Part::one_by_one || P == Part::mixed ? 8 : 24;
constexpr int kBatch = 8, kBatches = 128;  // products that are waited for together
constexpr int kMoments = 2 + kBatches;     // of a softmax: begin and end; of products: each batch

/// Values that the compiler takes for new ones.
template <int N>
__device__ void renew(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i]));
}
/// Which it takes as needed; `never` is not.
template <int N>
__device__ void use(const std::uint32_t (&x)[N], bool never, float* sink) {
  std::uint32_t all = 0;
  if (!never) return;
#pragma unroll
  for (int i = 0; i < N; ++i) all ^= x[i];
  *sink = __uint_as_float(all);
}

template <int N, int M>
struct Rows {
  float s[N], o[M], most[2], sum[2], scale[2];
  std::uint32_t p[N / 2];
};

template <Part P, int N, int M>
__device__ void part_of_softmax(Rows<N, M>& r, float c) {
  renew(r.s), renew(r.scale);
  if constexpr (P == Part::one_by_one) online_softmax(r.s, c, r.most, r.sum, r.scale);
  if constexpr (P == Part::maxima || P == Part::mixed) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float x = r.most[row];
#pragma unroll
      for (int i = row * 2; i < N; i += i % 2 == 0 ? 1 : 3) x = fmaxf(x, r.s[i]);
      x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
      x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
      if (P == Part::mixed) r.scale[row] = exp2_of((r.most[row] - x) * c), r.sum[row] *= r.scale[row];
      r.most[row] = x;
    }
  }
  if constexpr (P == Part::exponentials) {
    const float at[2] = {r.most[0] * c, r.most[1] * c};
#pragma unroll
    for (int i = 0; i < N; ++i) r.s[i] = exp2_of(fmaf(r.s[i], c, -at[i / 2 % 2]));
  }
  if constexpr (P == Part::mixed) {  // each exponential with what follows from it
    const float at[2] = {r.most[0] * c, r.most[1] * c};
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const float x = exp2_of(fmaf(r.s[i], c, -at[i / 2 % 2])), y = exp2_of(fmaf(r.s[i + 1], c, -at[i / 2 % 2]));
      r.sum[i / 2 % 2] += x, r.sum[i / 2 % 2] += y;
      r.p[i / 2] = packed(x, y), r.s[i] = x, r.s[i + 1] = y;
#pragma unroll
      for (int k = i * M / N; k < (i + 2) * M / N; ++k)
        asm volatile("mul.f32 %0, %0, %1;" : "+f"(r.o[k]) : "f"(r.scale[k / 2 % 2]));
    }
  }
  if constexpr (P == Part::sums) {
#pragma unroll
    for (int i = 0; i < N; ++i) r.sum[i / 2 % 2] += r.s[i];
    renew(r.sum);
  }
  if constexpr (P == Part::packing || P == Part::one_by_one) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) r.p[i] = packed(r.s[2 * i], r.s[2 * i + 1]);
    if (P == Part::packing)
#pragma unroll
      for (int i = 0; i < N / 2; ++i) r.s[2 * i] = __uint_as_float(r.p[i]);
  }
  if constexpr (P == Part::rescaling || P == Part::one_by_one) {
#pragma unroll
    for (int i = 0; i < M; ++i) r.o[i] *= r.scale[i / 2 % 2];
    renew(r.o);
  }
}

template <Part P, int TileN, int Warpgroups, int Columns, bool Registers>
__global__ void __launch_bounds__((Warpgroups + 1) * 128, 1)
    probe_contention(float* sink, const float* start, bool products, bool softmax, long long* moments) {
  extern __shared__ __align__(1024) std::uint8_t smem[];
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  constexpr int outputs = Warpgroups > 1 ? 32 : 64;
  long long* const at = moments + group * kMoments;
  const bool notes = threadIdx.x % 128 == 0;
  float all = 0;
  __syncthreads();
  const long long first = clock64();
  if (group == Warpgroups) {
    float d[Columns / 2];
    std::uint32_t from[4] = {0, 0, 0, 0};
    for (float& x : d) x = start[3];
    for (int batch = 0; batch < (products ? kBatches : 0); ++batch) {
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const std::uint64_t b = tile_descriptor(base + 8192 + i % 4 * 32, 16);
        if constexpr (Registers)
          Wgmma<Columns, false>::multiply(d, from, b, 1);
        else
          Wgmma<Columns, false>::multiply(d, tile_descriptor(base + i % 4 * 32, 16), b, 1);
      }
      wgmma_commit();
      wgmma_wait<1>();
      if (notes) at[2 + batch] = clock64() - first;
    }
    wgmma_wait<0>();
    for (const float x : d) all += x;
  } else if (softmax) {
    Rows<TileN / 2, outputs> r;
    for (float& x : r.s) x = start[2] + static_cast<float>(threadIdx.x);
    for (float& x : r.o) x = start[2];
    for (std::uint32_t& x : r.p) x = 0;
    for (int i = 0; i < 2; ++i) r.most[i] = start[1], r.sum[i] = 0, r.scale[i] = start[0];
    const float c = start[0];
    while (clock64() - first < kBegin) {
    }
    const int unseen = __float_as_int(start[4]);
    long long began = 0;
#pragma unroll 1
    for (int round = -kFetched; round < kRounds<P>; ++round) {
      if (round == 0) began = clock64();
      part_of_softmax<P>(r, c);
      use(r.p, round == unseen, sink);
    }
    const long long ended = clock64();
    if (notes) at[0] = began - first, at[1] = ended - first;
    for (const float x : r.s) all += x;
    for (const float x : r.o) all += x;
    for (const std::uint32_t x : r.p) all += __uint_as_float(x);
    for (int i = 0; i < 2; ++i) all += r.most[i] + r.sum[i] + r.scale[i];
  }
  sink[threadIdx.x] = all;
}

/// Products a cycle between two moments, of batches that ended at `at`.
double products_in(const long long* at, double from, double to) {
  const auto done = [&](double when) {
    int i = 1;
    while (i < kBatches - 1 && static_cast<double>(at[i]) < when) ++i;
    const double before = static_cast<double>(at[i - 1]), after = static_cast<double>(at[i]);
    return i - 1 + (when - before) / (after - before);
  };
  return kBatch * (done(to) - done(from)) / (to - from);
}

template <Part P, int TileN, int Warpgroups, int Columns, bool Registers>
void measure_one(std::vector<ContentionRow>& rows) {
  constexpr int smem = 8192 + Columns * 128 + 1024, threads = (Warpgroups + 1) * 128;
  const auto kernel = probe_contention<P, TileN, Warpgroups, Columns, Registers>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  const DeviceArray<float> sink(512), start(std::vector<float>{0.125F, -1e30F, 0.0F, 0.0F, -1.0F});
  const DeviceArray<long long> moments(std::size_t{Warpgroups + 1} * kMoments);
  const auto run = [&](bool products, bool softmax) {
    std::vector<long long> at;
    for (int i = 0; i < 3; ++i) {  // the last is kept
      kernel<<<1, threads, smem>>>(sink.data(), start.data(), products, softmax, moments.data());
      check(cudaGetLastError());
      at = moments.download();
    }
    return at;
  };
  const std::vector<long long> alone = run(false, true), multiplied = run(true, false), beside = run(true, true);
  const auto cycles = [](const std::vector<long long>& at) { return static_cast<double>(at[1] - at[0]) / kRounds<P>; };
  const long long* of_products = beside.data() + Warpgroups * kMoments + 2;
  if (static_cast<double>(beside[1]) > static_cast<double>(of_products[kBatches - 1]))
    throw std::logic_error("contention: products end before the softmax");
  ContentionRow row{kPartNames[static_cast<int>(P)], TileN, Warpgroups, Columns, Registers ? "registers" : "smem"};
  row.alone = cycles(alone), row.beside = cycles(beside);
  row.product_alone = 1 / products_in(multiplied.data() + Warpgroups * kMoments + 2, kBegin, kBegin + 4000);
  row.product_beside = 1 / products_in(of_products, static_cast<double>(beside[0]), static_cast<double>(beside[1]));
  rows.push_back(row);
}

template <int TileN, int Warpgroups, int Columns, bool Registers>
void measure_parts(std::vector<ContentionRow>& rows) {
  measure_one<Part::maxima, TileN, Warpgroups, Columns, Registers>(rows);
  measure_one<Part::exponentials, TileN, Warpgroups, Columns, Registers>(rows);
  measure_one<Part::sums, TileN, Warpgroups, Columns, Registers>(rows);
  measure_one<Part::packing, TileN, Warpgroups, Columns, Registers>(rows);
  measure_one<Part::rescaling, TileN, Warpgroups, Columns, Registers>(rows);
  measure_one<Part::one_by_one, TileN, Warpgroups, Columns, Registers>(rows);
  measure_one<Part::mixed, TileN, Warpgroups, Columns, Registers>(rows);
}

template <int TileN, int Headdim, bool PInSmem>
__global__ void __launch_bounds__(128, 1) probe_issue(float* sink, const float* start, long long* moments) {
  extern __shared__ __align__(1024) std::uint8_t smem[];
  const auto q = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem)), k = q + 8192, v = k + TileN * 128;
  float s[TileN / 2], o[Headdim / 2];
  std::uint32_t p[4];
  for (float& x : s) x = start[3];
  for (float& x : o) x = start[3];
  for (std::uint32_t& x : p) x = __float_as_uint(start[3]);
#pragma unroll 1
  for (int repeat = 0; repeat < 3; ++repeat) {  // the last is kept
    __syncthreads();
    const long long began = clock64();
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < Headdim / 16; ++i)
      Wgmma<TileN, false>::multiply(s, tile_descriptor(q + i % 4 * 32, 16), tile_descriptor(k + i % 4 * 32, 16), 1);
    wgmma_commit();
#pragma unroll
    for (int i = 0; i < TileN / 16; ++i) {
      if constexpr (PInSmem)
        Wgmma<Headdim, true>::multiply(o, tile_descriptor(q + i % 4 * 32, 16), tile_descriptor(v, 16), 1);
      else
        Wgmma<Headdim, true>::multiply(o, p, tile_descriptor(v, 16), 1);
    }
    wgmma_commit();
    const long long issued = clock64();
    wgmma_wait<1>();
    const long long scores = clock64();
    wgmma_wait<0>();
    const long long at[] = {issued - began, scores - began, clock64() - began};
    if (threadIdx.x == 0)
      for (int i = 0; i < 3; ++i) moments[i] = at[i];
  }
  float all = 0;
  for (const float x : s) all += x;
  for (const float x : o) all += x;
  sink[threadIdx.x] = all;
}

template <int TileN, int Headdim, bool PInSmem = false>
IssueRow measure_one_issue() {
  constexpr int smem = 8192 + TileN * 128 + 16 * Headdim * 2 + 1024;
  const auto kernel = probe_issue<TileN, Headdim, PInSmem>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  const DeviceArray<float> sink(128), start(4);
  const DeviceArray<long long> moments(3);
  kernel<<<1, 128, smem>>>(sink.data(), start.data(), moments.data());
  check(cudaGetLastError());
  const std::vector<long long> at = moments.download();
  return {TileN, Headdim, PInSmem, at[0], at[1], at[2]};
}

}  // namespace

std::vector<ContentionRow> measure_contention() {
  std::vector<ContentionRow> rows;
  measure_parts<128, 1, 128, false>(rows), measure_parts<128, 1, 128, true>(rows);
  measure_parts<176, 1, 176, false>(rows), measure_parts<176, 1, 64, false>(rows),
      measure_parts<64, 2, 128, false>(rows);
  return rows;
}

std::vector<IssueRow> measure_issue() {
  return {measure_one_issue<64, 128>(),  measure_one_issue<96, 128>(),       measure_one_issue<128, 128>(),
          measure_one_issue<176, 128>(), measure_one_issue<128, 64>(),       measure_one_issue<192, 64>(),
          measure_one_issue<80, 256>(),  measure_one_issue<192, 64, true>(), measure_one_issue<128, 128, true>()};
}

}  // namespace attest::hardware
