#include <algorithm>
#include <string>
#include <vector>

#include "attest/hardware/device.h"
#include "local.h"

namespace attest::hardware {
namespace {

enum class Order { write, read, forward, reverse, update, write_behind, read_behind, chase };
constexpr const char* order_names[] = {"write",  "read",         "forward",     "reverse",
                                       "update", "write_behind", "read_behind", "chase"};
enum class Beside { none, cg, ca, ld, st };
constexpr const char* beside_names[] = {"none", "cg", "ca", "ld", "st"};

constexpr std::uint32_t kOtherBytes = 16 << 20;  // of global memory: in L2, far more than L1

struct Turns {
  int words, turns, lag;
  bool in_step;
  int words_a_copy;               // 2^n words, after which a warp copies 512 bytes
  int first_byte = 0;             // of the frame: lest the compiler join what it knows to be aligned
  int copies = 1;                 // of 512 bytes each time
  std::uint32_t row_bytes = 256;  // from a row of 256 bytes that is copied to the next one
};

/// Cycles of a CTA's longest warp.
__device__ void note(unsigned* cycles, long long began) {
  atomicMax(cycles + blockIdx.x, static_cast<unsigned>(clock64() - began));
}

__device__ void start_apart(const Turns& t) {
  const long long began = clock64();
  while (!t.in_step && clock64() - began < threadIdx.x / 32 * 700) {
  }
}

template <int bytes>
struct Access;
template <>
struct Access<4> {
  static __device__ void store(std::uint32_t at, std::uint32_t x) {
    asm volatile("st.local.u32 [%0], %1;" ::"r"(at), "r"(x) : "memory");
  }
  static __device__ std::uint32_t load(std::uint32_t at) {
    std::uint32_t x;
    asm volatile("ld.local.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
  }
};
template <>
struct Access<16> {
  static __device__ void store(std::uint32_t at, std::uint32_t x) {
    asm volatile("st.local.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(x) : "memory");
  }
  static __device__ std::uint32_t load(std::uint32_t at) {
    uint4 x;
    asm volatile("ld.local.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(at)
                 : "memory");
    return x.x ^ x.y ^ x.z ^ x.w;
  }
};

/// Two rows of 256 bytes that no warp has copied for a long time.
template <Beside beside>
__device__ std::uint32_t copy(std::uint32_t shared, std::uint8_t* other, std::uint32_t at, std::uint32_t row_bytes) {
  const std::uint32_t lane = threadIdx.x % 32, row = 2 * (at / 512) + lane / 16;
  std::uint8_t* const from = other + row * row_bytes % kOtherBytes + lane % 16 * 16;
  const std::uint32_t to = shared + threadIdx.x * 16;
  if constexpr (beside == Beside::cg) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
  if constexpr (beside == Beside::ca) asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
  if constexpr (beside == Beside::st) asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(from), "r"(to));
  if constexpr (beside != Beside::ld) return 0;
  uint4 x;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from));
  return x.x ^ x.y ^ x.z ^ x.w;
}

template <Order order, int bytes, int frame, Beside beside>
__global__ void __launch_bounds__(1024, 1)
    probe_local(Turns t, std::uint8_t* other, unsigned* cycles, std::uint32_t* sink) {
  extern __shared__ __align__(16) std::uint8_t smem[];
  constexpr int words = bytes / 4;
  std::uint32_t array[frame];
  const auto first = static_cast<std::uint32_t>(__cvta_generic_to_local(array)) + t.first_byte;
  const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem));
  const std::uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  using A = Access<bytes>;
  std::uint32_t sum = 0;
  std::uint32_t copied = warp * 512 * 97;
  const auto beside_it = [&](int i) {
    if constexpr (beside != Beside::none)
      if ((i & (t.words_a_copy - 1)) == 0)
        for (int n = 0; n < t.copies; ++n) sum ^= copy<beside>(shared, other, copied += 512 * 13, t.row_bytes);
  };
  if constexpr (order == Order::read || order == Order::read_behind || order == Order::chase)
    for (int i = 0; i < t.words; i += words) A::store(first + 4 * i, first + 4 * ((i + 1) % t.words));
  start_apart(t);
  long long began = clock64();
  for (int turn = 0; turn < t.turns; ++turn) {
    if (t.in_step) __syncthreads();
    if (turn == 1) began = clock64();
    if constexpr (order == Order::write || order == Order::forward || order == Order::reverse)
#pragma unroll 8
      for (int i = 0; i < t.words; i += words) A::store(first + 4 * i, sum + i), beside_it(i);
    if constexpr (order == Order::read || order == Order::forward)
#pragma unroll 8
      for (int i = 0; i < t.words; i += words) sum ^= A::load(first + 4 * i), beside_it(i);
    if constexpr (order == Order::reverse)
#pragma unroll 8
      for (int i = t.words - words; i >= 0; i -= words) sum ^= A::load(first + 4 * i);
    if constexpr (order == Order::update)
#pragma unroll 8
      for (int i = 0; i < t.words; i += words) A::store(first + 4 * i, A::load(first + 4 * i));
    if constexpr (order == Order::write_behind || order == Order::read_behind)
#pragma unroll 8
      for (int i = 0; i < t.words; i += words) {
        if constexpr (order == Order::write_behind)
          A::store(first + 4 * i, turn);
        else
          sum ^= A::load(first + 4 * i);
        sum ^= A::load(first + 4 * (i < t.lag ? i - t.lag + t.words : i - t.lag));
      }
    if constexpr (order == Order::chase) {
      std::uint32_t at = first;
      for (int i = 0; i < t.words; ++i) at = A::load(at);
      sum ^= at;
    }
    if constexpr (beside == Beside::cg || beside == Beside::ca) asm volatile("cp.async.wait_all;" ::: "memory");
  }
  note(cycles, began);
  if (sum == 0x9e3779b9) *sink = sum;
}

// Registers of which the compiler spills all but about twenty. Only volatile accesses of shared memory stay in order.
template <Order order, int values, int lag>
__global__ void __maxnreg__(32) probe_spilled(Turns t, std::uint8_t*, unsigned* cycles, std::uint32_t*) {
  extern __shared__ __align__(16) std::uint8_t smem[];
  volatile std::uint32_t* const word = reinterpret_cast<std::uint32_t*>(smem) + threadIdx.x;
  *word = threadIdx.x;
  start_apart(t);
  long long began = clock64();
  for (int turn = 0; turn < t.turns; ++turn) {
    if (t.in_step) __syncthreads();
    if (turn == 1) began = clock64();
    std::uint32_t value[values];
#pragma unroll
    for (int i = 0; i < values; ++i) {
      value[i] = *word;
      if constexpr (order == Order::write_behind)
        if (i >= lag) *word = value[i - lag];
    }
#pragma unroll
    for (int i = order == Order::write_behind ? values - lag : 0; i < values; ++i)
      *word = value[order == Order::reverse ? values - 1 - i : i];
  }
  note(cycles, began);
}

using Kernel = void (*)(Turns, std::uint8_t*, unsigned*, std::uint32_t*);

struct Probe {
  std::string order;
  Kernel kernel = nullptr;
  int bytes = 4;
  Beside beside = Beside::none;
};

/// Of a frame of so many words; 160 are what a kernel has that spills much.
template <Order order, int bytes = 4, int frame = 1024, Beside beside = Beside::none>
Probe indexed() {
  return {order_names[static_cast<int>(order)], probe_local<order, bytes, frame, beside>, bytes, beside};
}
template <Order order, int values, int lag = 0>
Probe spilled() {
  constexpr const char* how = order == Order::write_behind ? "spilled_behind"
                              : order == Order::reverse    ? "spilled_reverse"
                                                           : "spilled_forward";
  return {how, probe_spilled<order, values, lag>};
}

struct Shape {
  int warps = 4, ctas = 2, sms = 0;  // 0: all
  int kib = 196;                     // shared memory of an SM's CTAs
  bool driver = false;               // chooses how much is set aside
};

class Bench {
 public:
  explicit Bench(std::ostream& rows) : rows_(rows) {
    check(cudaDeviceGetAttribute(&sms_, cudaDevAttrMultiProcessorCount, 0));
  }

  void run(const Probe& probe, const Shape& shape, Turns t) {
    constexpr int reserved_kib = 1, all_kib = 228;
    const int smem = (shape.kib / shape.ctas - reserved_kib) * 1024;
    check(cudaFuncSetAttribute(probe.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    check(cudaFuncSetAttribute(probe.kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                               shape.driver ? cudaSharedmemCarveoutDefault : 100 * shape.kib / all_kib));
    const int sms = shape.sms == 0 ? sms_ : shape.sms;
    const DeviceArray<unsigned> cycles(static_cast<std::size_t>(sms) * shape.ctas);
    probe.kernel<<<sms * shape.ctas, 32 * shape.warps, smem>>>(t, other_.data(), cycles.data(), sink_.data());
    check(cudaGetLastError());
    double sum = 0;
    for (const unsigned c : cycles.download()) sum += c;
    if (t.words == 0) {  // the compiler's
      cudaFuncAttributes of{};
      check(cudaFuncGetAttributes(&of, probe.kernel));
      t.words = static_cast<int>(of.localSizeBytes / 4);
    }
    rows_ << probe.order << ',' << probe.bytes << ',' << t.words << ',' << shape.warps << ',' << shape.ctas << ','
          << sms << ',' << shape.kib << ',' << !shape.driver << ',' << t.turns << ',' << t.lag << ',' << t.in_step
          << ',' << beside_names[static_cast<int>(probe.beside)] << ','
          << (probe.beside == Beside::none ? 0 : 4.0 * t.copies / t.words_a_copy) << ',' << t.row_bytes << ','
          << sum / (sms * shape.ctas) << '\n';
  }

 private:
  std::ostream& rows_;
  int sms_ = 0;
  const DeviceArray<std::uint8_t> other_{kOtherBytes + 512};
  const DeviceArray<std::uint32_t> sink_{1};
};

Turns turns_of(int words, int turns = 32, bool in_step = true) { return {words, turns, 0, in_step, 1}; }

/// Words of a thread that make `share` of what shared memory leaves of 256 KiB.
int words_of(double share, const Shape& s) {
  return static_cast<int>(share * (256 - s.kib) * 8 / (s.warps * s.ctas) + 0.5);
}

void footprints(Bench& bench) {
  for (const int kib : {228, 196, 164, 132, 100, 64})
    for (const double share : {0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.5}) {
      const Shape shape{.kib = kib};
      bench.run(indexed<Order::read>(), shape, turns_of(words_of(share, shape)));
    }
  for (const int kib : {196, 132})
    for (const double share : {0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0}) {
      const Shape shape{.kib = kib};
      const Turns t = turns_of(words_of(share, shape));
      for (const Probe& probe : {indexed<Order::forward>(), indexed<Order::reverse>(), indexed<Order::update>()})
        bench.run(probe, shape, t);
    }
  for (const double share : {0.5, 0.9, 1.0, 1.1, 1.5}) {
    const Shape shape;
    const int words = words_of(share, shape);
    bench.run(indexed<Order::read, 4, 160>(), shape, turns_of(words));
    for (const Probe& probe : {indexed<Order::read>(), indexed<Order::forward>(), indexed<Order::reverse>()})
      bench.run(probe, shape, turns_of(words, 32, false));
    bench.run(indexed<Order::forward, 16>(), shape, turns_of(words / 4 * 4));
    bench.run(indexed<Order::read, 16>(), shape, turns_of(words / 4 * 4));
    for (const Shape& other : {Shape{8, 1}, Shape{4, 1}, Shape{16, 1}, Shape{16, 2}})
      bench.run(indexed<Order::forward>(), other, turns_of(words_of(share, other)));
  }
}

/// How many others a line outlives that is stored or loaded, in frames far beyond L1.
void lags(Bench& bench) {
  for (const int lag : {2, 8, 16, 24, 28, 32, 40, 48, 56, 60, 64, 72, 96, 124}) {
    Turns t = turns_of(400, 8);
    t.lag = lag;
    bench.run(indexed<Order::write_behind>(), {}, t);
    bench.run(indexed<Order::read_behind>(), {}, t);
  }
}

template <int values>
void spills_of(Bench& bench) {
  for (const Shape& shape : {Shape{}, Shape{.kib = 132}, Shape{8, 2}}) {
    Turns t = turns_of(0);
    bench.run(spilled<Order::forward, values>(), shape, t);
    bench.run(spilled<Order::reverse, values>(), shape, t);
    t.lag = values;
    bench.run(spilled<Order::write_behind, 3 * values, values>(), shape, t);
  }
}

void spills(Bench& bench) {
  spills_of<40>(bench), spills_of<56>(bench), spills_of<72>(bench), spills_of<88>(bench), spills_of<104>(bench);
  spills_of<136>(bench), spills_of<168>(bench);
}

void beside(Bench& bench) {
  for (const double share : {0.6, 0.9})
    for (const int words_a_copy : {1, 8}) {
      Turns t = turns_of(words_of(share, {}));
      t.words_a_copy = words_a_copy;
      bench.run(indexed<Order::forward, 4, 1024, Beside::cg>(), {}, t);
      bench.run(indexed<Order::forward, 4, 1024, Beside::ca>(), {}, t);
      bench.run(indexed<Order::forward, 4, 1024, Beside::ld>(), {}, t);
      bench.run(indexed<Order::forward, 4, 1024, Beside::st>(), {}, t);
    }
  // a few words that are loaded in each turn, beside rows of a tensor
  for (const std::uint32_t row_bytes : {256, 1024, 4096, 8192, 16384})
    for (const int copies : {1, 2, 4, 8}) {
      Turns t = turns_of(6);
      t.words_a_copy = 1, t.copies = copies, t.row_bytes = row_bytes;
      bench.run(indexed<Order::read, 4, 1024, Beside::ld>(), {}, t);
      bench.run(indexed<Order::read, 4, 1024, Beside::st>(), {}, t);
    }
}

/// Hits (8 words) and misses (28 KiB of L1): one after the other, and as many at once as there are warps for.
void costs(Bench& bench) {
  const Shape one{.warps = 1, .ctas = 1, .kib = 228};
  for (const int sms : {1, 0}) {
    Shape shape = one;
    shape.sms = sms;
    bench.run(indexed<Order::chase>(), shape, turns_of(8, 256));
    bench.run(indexed<Order::chase>(), shape, turns_of(1000, 4));
    for (const int warps : {1, 4, 8, 16, 32}) {
      shape.warps = warps;
      for (const Probe& probe : {indexed<Order::read>(), indexed<Order::forward>(), indexed<Order::write>()}) {
        bench.run(probe, shape, turns_of(4, 256));
        bench.run(probe, shape, turns_of(std::max(48, 512 / warps), 32));
      }
      bench.run(indexed<Order::read, 16>(), shape, turns_of(std::max(48, 512 / warps), 32));
    }
  }
}

/// How much shared memory the driver sets aside.
void drivers_choice(Bench& bench) {
  for (const Shape& shape :
       {Shape{4, 2, 0, 196, true}, Shape{4, 1, 0, 98, true}, Shape{4, 1, 0, 49, true}, Shape{4, 1, 0, 17, true},
        Shape{4, 1, 0, 130, true}, Shape{4, 1, 1, 98, true}, Shape{32, 1, 0, 17, true}, Shape{32, 1, 0, 49, true},
        Shape{32, 1, 0, 98, true}, Shape{16, 1, 0, 26, true}})
    bench.run(indexed<Order::read>(), shape, turns_of(16));
}

}  // namespace

void measure_local(std::ostream& rows) {
  Bench bench(rows);
  footprints(bench);
  lags(bench);
  spills(bench);
  beside(bench);
  costs(bench);
  drivers_choice(bench);
}

}  // namespace attest::hardware
