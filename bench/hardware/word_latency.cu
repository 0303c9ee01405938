// How long a word of local memory that misses L1 takes, while all SMs store and load as gpu/sm80's kernel does whose
// registers are spilled by force. CSV to standard output.
//
//     word_latency [SHARE [CYCLES...]] > docs/results/h200-sm/word_latency.csv
//
// CTAs of four warps play turns: the accesses of spill_traces.csv (compute capability 9.0, a whole tile), each a line
// of 128 bytes of global memory: all stores, and of the loads, which pass L1, SHARE (0.69), others by turn and warp. A
// turn is stretched to CYCLES; what is less than 32 cycles of the trace apart is one burst. A load's value is waited
// for where the trace does. One load in 128 is timed instead: its value is waited for at once. Columns: CTAs an SM,
// cycles of a turn as wanted and as they were, SHARE, whether words are stored (neither: nothing is under way but timed
// loads), whether each CTA copies two tiles of 16 KiB a turn, whether CTAs begin up to a turn apart; loads timed, and
// their cycles, clocks included.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "attest/hardware/device.h"
#include "spill_turn.h"

namespace attest::hardware {
namespace {

constexpr int kWarps = 4, kLineBytes = 128, kOneTimed = 128;
constexpr int kFirstTurn = 8, kLastTurn = 24, kTurns = 26, kLaunches = 4;  // turns up to kLastTurn count
constexpr int kSmemKib[] = {0, 120, 97};                                   // lest more CTAs fit on an SM
constexpr int kTileBytes = 16 << 10, kTiles = 512;                         // with all frames, in L2
constexpr int kMasks = 256, kMost = 512;                                   // loads timed by a warp
constexpr std::uint32_t kNever = 0x9e3779b9;                               // memory holds numbers of turns

struct Played {
  unsigned cycles;  // a turn's begin to another's
  unsigned timed[kWarps];
  std::uint16_t took[kWarps][kMost];
};

struct Player {
  std::uint8_t* frame;
  const std::uint8_t* tiles;
  std::uint32_t tile, copied;  // a tile's number, where in shared memory it goes
  unsigned began, scale;       // 2^16 for a turn as long as the trace's
  std::uint32_t turn, sum;
  Mask mask;
  std::uint32_t value[kTurn.loads];
  std::uint16_t* took;
  unsigned noted;
};

__device__ __forceinline__ void wait_until(const Player& p, unsigned at) {
  while (static_cast<unsigned>(clock()) - p.began < (at * p.scale) >> 16) continue;
}

template <bool stores, bool copies, bool times, int i>
__device__ __forceinline__ void go(Player& p) {
  constexpr Event e = kTurn.events[i];
  constexpr int byte = e.word * kLineBytes;
  if constexpr (e.kind == 's' && stores)
    asm volatile("st.global.u32 [%0+%1], %2;" ::"l"(p.frame), "n"(byte), "r"(p.turn) : "memory");
  if constexpr (e.kind == 'l') {
    constexpr std::uint32_t bit = 1u << e.load % 32;
    std::uint32_t& x = p.value[e.load];
    if (times && (p.mask.timed[e.load / 32] & bit) != 0) {
      const auto began = static_cast<unsigned>(clock());
      asm volatile("ld.global.cg.u32 %0, [%1+%2];" : "=r"(x) : "l"(p.frame), "n"(byte) : "memory");
      if (x == kNever) __trap();  // a branch on what is read keeps the clock behind it
      const auto took = static_cast<std::uint16_t>(min(static_cast<unsigned>(clock()) - began, 65535u));
      if (p.noted < kMost) p.took[p.noted++] = took;
    } else {
      asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %1, 0;\nmov.u32 %0, 0;\n@p ld.global.cg.u32 %0, [%2+%3];\n}"
                   : "=r"(x)
                   : "r"(p.mask.plays[e.load / 32] & bit), "l"(p.frame), "n"(byte)
                   : "memory");
    }
  }
  if constexpr (e.kind == 'w') asm volatile("xor.b32 %0, %0, %1;" : "+r"(p.sum) : "r"(p.value[e.load]));
  if constexpr (e.kind == 'c' && copies)
    for (int byte_of = 0; byte_of < kTileBytes; byte_of += kWarps * 512)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(p.copied + e.word * kTileBytes + byte_of),
                   "l"(p.tiles + (p.tile + e.word) % kTiles * kTileBytes + byte_of)
                   : "memory");
}

template <bool stores, bool copies, bool times, int first, int... i>
__device__ __forceinline__ void go_on(Player& p, std::integer_sequence<int, i...>) {
  (go<stores, copies, times, first + i>(p), ...);
}

template <bool stores, bool copies, int burst>
__device__ __forceinline__ void go_burst(Player& p) {
  constexpr int first = kTurn.bursts[burst], count = kTurn.bursts[burst + 1] - first;
  constexpr Mask loads = loads_of(first, first + count);
  constexpr auto events = std::make_integer_sequence<int, count>();
  wait_until(p, kTurn.events[first].at);
  std::uint32_t timed = 0;
  for (int i = 0; i < kMaskWords; ++i) timed |= p.mask.timed[i] & loads.timed[i];
  if (timed != 0)
    go_on<stores, copies, true, first>(p, events);
  else
    go_on<stores, copies, false, first>(p, events);
}

template <bool stores, bool copies, int... burst>
__device__ __forceinline__ void go_all(Player& p, std::integer_sequence<int, burst...>) {
  (go_burst<stores, copies, burst>(p), ...);
}

template <bool stores, bool copies>
__global__ void __launch_bounds__(32 * kWarps, 2) play(std::uint8_t* frames, const std::uint8_t* tiles,
                                                       const Mask* masks, unsigned cycles, bool apart, Played* played) {
  extern __shared__ __align__(16) std::uint8_t smem[];
  auto* const mask = reinterpret_cast<Mask*>(smem + 2 * kTileBytes);
  auto* const took = reinterpret_cast<std::uint16_t*>(mask + kMasks);
  const unsigned warp_of = threadIdx.x / 32, warp = blockIdx.x * kWarps + warp_of, lane = threadIdx.x % 32;
  Player p;
  p.frame = frames + std::size_t{warp} * kTurn.words * kLineBytes + 4 * lane;
  p.tiles = tiles + 16 * threadIdx.x;
  p.copied = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem)) + 16 * threadIdx.x;
  p.took = took + warp_of * kMost;
  p.sum = p.noted = 0;
  p.scale = (cycles << 16) / kSpillCycles;
  for (unsigned i = threadIdx.x; i < kMasks; i += blockDim.x) mask[i] = masks[i];
  for (int word = 0; word < kTurn.words; ++word)
    *reinterpret_cast<volatile std::uint32_t*>(p.frame + word * kLineBytes) = 0;
  unsigned began = 0, ended = 0, noted = 0;
  const unsigned delay = apart ? (blockIdx.x * 2654435761u >> 8) % cycles : 0;
  for (const auto from = static_cast<unsigned>(clock()); static_cast<unsigned>(clock()) - from < delay;) continue;
  for (p.turn = 0; p.turn < kTurns; ++p.turn) {
    if constexpr (copies) asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    p.mask = mask[(warp * 37 + p.turn * 101) % kMasks];
    p.tile = blockIdx.x * 7 + 2 * p.turn;
    asm volatile("" : "+r"(p.scale));  // lest all its products are kept
    __syncthreads();
    p.began = static_cast<unsigned>(clock());
    if (p.turn == kFirstTurn) began = p.began, p.noted = 0;
    if (p.turn == kLastTurn) ended = p.began, noted = p.noted;
    go_all<stores, copies>(p, std::make_integer_sequence<int, kTurn.burst_count>());
    wait_until(p, kSpillCycles);
  }
  if (p.sum == kNever) __trap();
  Played& of = played[blockIdx.x];
  of.cycles = ended - began, of.timed[warp_of] = noted;
  for (unsigned i = lane; i < noted; i += 32) of.took[warp_of][i] = p.took[i];
}

struct Shape {
  int ctas_an_sm, cycles;
  double share;
  bool stores = true, copies = false, apart = false;
};

std::vector<Mask> masks_of(double share) {
  std::vector<Mask> masks(kMasks);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> part(0, 1);
  for (Mask& mask : masks)
    for (int load = 0; load < kTurn.loads; ++load)
      if (const bool timed = random() % kOneTimed == 0; timed || part(random) < share)
        (timed ? mask.timed : mask.plays)[load / 32] |= 1u << load % 32;
  return masks;
}

class Bench {
 public:
  void run(const Shape& s, int launches, bool warms = false) const {
    const auto kernel = !s.stores ? play<false, false> : s.copies ? play<true, true> : play<true, false>;
    const int smem = kSmemKib[s.ctas_an_sm] << 10;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100 * 196 / 228));
    const DeviceArray<Mask> masks(masks_of(s.share));
    const DeviceArray<Played> played(static_cast<std::size_t>(sms_) * s.ctas_an_sm);
    double cycles = 0, sum = 0, squares = 0;
    std::vector<std::uint16_t> took;
    for (int launch = 0; launch < launches; ++launch) {
      kernel<<<sms_ * s.ctas_an_sm, 32 * kWarps, smem>>>(frames_.data(), tiles_.data(), masks.data(),
                                                         static_cast<unsigned>(s.cycles), s.apart, played.data());
      check(cudaGetLastError());
      if (warms) continue;
      for (const Played& cta : played.download()) {
        cycles += cta.cycles;
        for (int w = 0; w < kWarps; ++w) took.insert(took.end(), cta.took[w], cta.took[w] + cta.timed[w]);
      }
    }
    check(cudaDeviceSynchronize());
    if (warms || took.empty()) return;
    std::sort(took.begin(), took.end());
    for (const double t : took) sum += t, squares += t * t;
    const double mean = sum / static_cast<double>(took.size()), square = squares / static_cast<double>(took.size());
    std::printf("%d,%d,%.0f,%g,%d,%d,%d,%zu,%.1f,%.1f,%d,%d,%d\n", s.ctas_an_sm, s.cycles,
                cycles / launches / (sms_ * s.ctas_an_sm) / (kLastTurn - kFirstTurn), s.share, s.stores, s.copies,
                s.apart, took.size(), mean, std::sqrt(std::max(0.0, square - mean * mean)), took.front(),
                took[took.size() / 2], took.back());
  }

 private:
  int sms_ = multiprocessors();
  DeviceArray<std::uint8_t> frames_{std::size_t{2} * sms_ * kWarps * kTurn.words * kLineBytes};
  DeviceArray<std::uint8_t> tiles_{std::size_t{kTiles} * kTileBytes};
};

void measure(double share, const std::vector<int>& turns) {
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0));
  std::string driver = "?";
  std::ifstream version("/proc/driver/nvidia/version");
  for (std::string word; version >> word && driver == "?";)
    if (std::count(word.begin(), word.end(), '.') == 2) driver = word;
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  std::printf("# %s, driver %s, CUDA %d.%d, %s; word_latency %g", device.name, driver.c_str(), CUDART_VERSION / 1000,
              CUDART_VERSION % 1000 / 10, date, share);
  for (const int cycles : turns) std::printf(" %d", cycles);
  std::printf(
      "\nctas_per_sm,turn_cycles_wanted,turn_cycles,share,stores,copies,apart,loads_timed,latency_mean,"
      "latency_deviation,latency_min,latency_median,latency_max\n");
  const Bench bench;
  bench.run({2, 7700, share}, 3000, true);
  bench.run({1, 22000, 0, false}, kLaunches);
  for (const int cycles : turns) bench.run({2, cycles, share, false}, kLaunches);
  for (const int ctas : {1, 2})
    for (const bool apart : {false, true})
      for (const bool copies : {false, true})
        for (const int cycles : turns) bench.run({ctas, cycles, share, true, copies, apart}, kLaunches);
}

}  // namespace
}  // namespace attest::hardware

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const double share = words.empty() ? 0.69 : std::stod(words[0]);
  if (!(share >= 0 && share <= 1)) throw std::runtime_error("SHARE is 0 to 1");
  std::vector<int> turns;
  for (std::size_t i = 1; i < words.size(); ++i)
    if (turns.push_back(std::stoi(words[i])); turns.back() < 100 || turns.back() > 65535)
      throw std::runtime_error("a turn has 100 to 65535 cycles");
  attest::hardware::measure(share, turns.empty() ? std::vector{4269, 5500, 7700, 11000, 16000, 22000} : turns);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "word_latency: %s\n", error.what());
  return 1;
}
