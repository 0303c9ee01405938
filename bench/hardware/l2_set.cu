// One set of L2, access by access: finds lines that fall into one set of the partition of SM 0, plays sequences of
// reads and writes on them, one after the other, and says how long each took. CSV to standard output.
//
//     l2_set > docs/results/h200-l2/one_set.csv
//     l2_set victims > docs/results/h100/set_victims.csv
//     l2_set labels N > labels.csv    # which lines of 256 MiB fall into any of N sets
//     l2_set labels N GIB > far.csv   # which lines of 500 MiB at random of so many GiB beside them
//
// Accesses are of whole lines, by a warp each: lanes that write parts of a sector would have DRAM read for the next
// read of it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attest/hardware/l2_set_finder.cuh"

namespace attest::hardware {
namespace {

constexpr std::size_t kWanted = 34;  // lines of the set
constexpr int kAccesses = 1500;

enum class Kind : std::uint8_t { read, write, read_evict_first, read_last };
struct Access {
  std::uint16_t actor;  // 0: an SM of the lines' side; 1: of the other one
  Kind kind;
  std::uint8_t line;
};

/// Two CTAs, each on its SM, make the accesses in turn.
__global__ void __launch_bounds__(32, 1)
    play(std::uint8_t* buffer, const std::uint32_t* lines, const Access* accesses, int count, int far_sm,
         volatile unsigned* turn, unsigned* arrived, std::uint16_t* cycles) {
  extern __shared__ Access list[];
  const int me = sm_id() == 0 ? 0 : sm_id() == static_cast<unsigned>(far_sm) ? 1 : -1;
  if (me < 0) return;
  for (int i = threadIdx.x; i < count; i += 32) list[i] = accesses[i];
  auto* const where = reinterpret_cast<std::uint32_t*>(list + count);
  for (int i = threadIdx.x; i < static_cast<int>(kWanted); i += 32) where[i] = lines[i];
  auto* const took = reinterpret_cast<std::uint16_t*>(where + kWanted);
  __syncwarp();
  unsigned generation = 0;
  grid_barrier(arrived, generation, 2);
  std::uint32_t sum = 0;
  for (int i = 0; i < count; ++i) {
    const Access a = list[i];
    if (a.actor != me) continue;
    if (i > 0 && list[i - 1].actor != me)
      while (*turn != static_cast<unsigned>(i)) {
      }
    std::uint8_t* const at = buffer + kLineBytes * where[a.line] + 4 * threadIdx.x;
    std::uint32_t x = 0;
    __syncwarp();
    const long long began = clock64();
    if (a.kind == Kind::read) x = read(at);
    if (a.kind == Kind::read_evict_first)
      asm volatile(
          "{.reg .b64 p; createpolicy.fractional.L2::evict_first.b64 p, 1.0;"
          " ld.global.cg.L2::cache_hint.u32 %0, [%1], p;}"
          : "=r"(x)
          : "l"(at)
          : "memory");
    if (a.kind == Kind::read_last) asm volatile("ld.global.lu.u32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
    if (a.kind == Kind::write) {
      asm volatile("st.global.cg.u32 [%0], %1;" ::"l"(at), "r"(0) : "memory");
      __threadfence();
    }
    sum += x;
    asm volatile("" ::"r"(sum) : "memory");
    if (sum == kNever) __trap();
    took[i] = static_cast<std::uint16_t>(min(clock64() - began, 65535ll));
    __syncwarp();
    if (i + 1 < count && list[i + 1].actor != me) {
      __threadfence();
      *turn = i + 1;
    }
  }
  __syncwarp();
  for (int i = threadIdx.x; i < count; i += 32)
    if (list[i].actor == me) cycles[i] = took[i];
}

class Set {
 public:
  Set() : lines_(finder_.find()) {
    finder_.add(lines_, kWanted);
    check(cudaFuncSetAttribute(play, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  }

  std::vector<std::uint16_t> played(const std::vector<Access>& accesses) const {
    const DeviceArray<std::uint32_t> lines(lines_);
    const DeviceArray<Access> list(accesses);
    const DeviceArray<unsigned> turn(1), arrived(1);
    const DeviceArray<std::uint16_t> cycles(accesses.size());
    int far_sm = 0;
    while (finder_.sms()[static_cast<std::size_t>(far_sm)].side == finder_.sms()[0].side) ++far_sm;
    play<<<static_cast<unsigned>(finder_.sms().size()), 32, kSmemOneCtaAnSm>>>(
        finder_.buffer(), lines.data(), list.data(), static_cast<int>(accesses.size()), far_sm, turn.data(),
        arrived.data(), cycles.data());
    check(cudaDeviceSynchronize());
    return cycles.download();
  }

 private:
  L2SetFinder finder_;
  Lines lines_;
};

/// Of ten accesses.
struct Mix {
  unsigned writes = 0, evict_first = 0, last_uses = 0;
};

/// Each actor reads 20 lines, then accesses at random.
std::vector<Access> at_random(const char* actors, unsigned lines, Mix mix, unsigned seed) {
  std::mt19937 random(seed);
  const std::string who = actors;
  std::vector<Access> list;
  for (const char actor : who)
    for (std::uint8_t line = 0; line < 20; ++line)
      list.push_back({static_cast<std::uint16_t>(actor - 'a'), Kind::read, line});
  while (list.size() < kAccesses) {
    const unsigned kind = random() % 10;
    list.push_back({static_cast<std::uint16_t>(who[random() % who.size()] - 'a'),
                    kind < mix.writes                                     ? Kind::write
                    : kind < mix.writes + mix.evict_first                 ? Kind::read_evict_first
                    : kind < mix.writes + mix.evict_first + mix.last_uses ? Kind::read_last
                                                                          : Kind::read,
                    static_cast<std::uint8_t>(random() % lines)});
  }
  return list;
}

void measure() {
  const Set set;
  std::printf("actors,lines,writes,evict_first,last_uses,accesses,cycles\n");
  unsigned seed = 0;
  const auto play = [&](const std::vector<Mix>& mixes) {
    for (const char* actors : {"a", "b", "ab"})
      for (const Mix& mix : mixes)
        for (const unsigned lines : {17u, 20u, 24u}) {
          const std::vector<Access> accesses = at_random(actors, lines, mix, ++seed);
          const std::vector<std::uint16_t> cycles = set.played(accesses);
          std::printf("%s,%u,%u,%u,%u,", actors, lines, mix.writes, mix.evict_first, mix.last_uses);
          for (const Access& a : accesses)
            std::printf("%c%c%d ", 'a' + a.actor, "rwel"[static_cast<int>(a.kind)], static_cast<int>(a.line));
          std::printf(",");
          for (const std::uint16_t c : cycles) std::printf("%d ", static_cast<int>(c));
          std::printf("\n");
        }
  };
  play({{0, 0, 0}, {3, 0, 0}, {0, 3, 0}, {2, 3, 0}});
  play({{0, 0, 3}, {2, 0, 3}});
}

/// Which of a set's 16 lines goes for another one. They are read in order, when others have filled the set, then
/// accessed at random, and read at last in any order: the first that is not there is what went.
void victims() {
  constexpr unsigned ways = 16, experiments = 1300;
  constexpr std::size_t longest = kWanted + ways + 20 + ways;
  const Set set;
  std::mt19937 random(7);
  std::printf("accesses,victim\n");
  for (unsigned done = 0; done < experiments;) {
    std::vector<Access> all;
    struct Experiment {
      std::size_t first, probes, end;  // in `all`
    };
    std::vector<Experiment> of;
    const auto put = [&](Kind kind, unsigned line) { all.push_back({0, kind, static_cast<std::uint8_t>(line)}); };
    for (; all.size() + longest <= kAccesses && done < experiments; ++done) {
      for (unsigned line = ways + 1; line < kWanted; ++line) put(Kind::read, line);
      for (unsigned line = 0; line < ways; ++line) put(Kind::read, line);
      const std::size_t first = all.size();
      const unsigned operations = std::array{4u, 8u, 20u}[done % 3], lines = done % 2 == 0 ? 6 : ways;
      for (unsigned i = 0; i < operations; ++i) {
        const unsigned kind = random() % 10;
        put(kind < 3 ? Kind::write : kind < 7 ? Kind::read_last : Kind::read, random() % lines);
      }
      put(random() % 2 == 0 ? Kind::read : Kind::read_last, ways);
      const std::size_t probes = all.size();
      std::array<unsigned, ways> order{};
      std::iota(order.begin(), order.end(), 0u);
      std::shuffle(order.begin(), order.end(), random);
      for (const unsigned line : order) put(Kind::read, line);
      of.push_back({first, probes, all.size()});
    }
    const std::vector<std::uint16_t> cycles = set.played(all);
    for (const Experiment& e : of) {
      std::size_t gone = e.probes;
      while (gone < e.end && cycles[gone] <= kNear) ++gone;
      if (gone == e.end) throw std::runtime_error("none of 16 lines went for a seventeenth");
      for (std::size_t i = e.first; i < e.probes; ++i)
        std::printf("%sa%c%d", i == e.first ? "" : " ", "rwel"[static_cast<int>(all[i].kind)],
                    static_cast<int>(all[i].line));
      std::printf(",%d\n", static_cast<int>(all[gone].line));
    }
  }
}

constexpr int kReaders = 256;
constexpr std::uint32_t kChunkLines = 8192;

/// The SMs of one side read the lines first, first + 1, ..., or those of a list.
__global__ void __launch_bounds__(kReaders, 1)
    read_lines(const std::uint8_t* buffer, const int* rank_of_sm, int readers, const std::uint32_t* list,
               std::uint32_t first, int count, unsigned* sink) {
  const int rank = rank_of_sm[sm_id()];
  if (rank < 0) return;
  std::uint32_t sum = 0;
  for (int i = rank * kReaders + static_cast<int>(threadIdx.x); i < count; i += readers * kReaders)
    sum += read(buffer + kLineBytes * (list != nullptr ? list[i] : first + static_cast<std::uint32_t>(i)));
  if (sum != 0) *sink = sum;
}

/// What each of a chunk's lines takes, in cycles; each SM of the side reads its part of them one by one.
__global__ void __launch_bounds__(32, 1) time_lines(const std::uint8_t* buffer, const int* rank_of_sm, int readers,
                                                    std::uint32_t first, std::uint16_t* cycles) {
  const int rank = rank_of_sm[sm_id()];
  if (rank < 0 || threadIdx.x != 0) return;
  long long before = clock64();
  for (std::uint32_t i = static_cast<std::uint32_t>(rank); i < kChunkLines; i += static_cast<unsigned>(readers)) {
    if (read(buffer + kLineBytes * (first + i) + (before == kNever ? 4 : 0)) == kNever) __trap();
    const long long now = clock64();
    cycles[i] = static_cast<std::uint16_t>(min(now - before, 65535ll));
    before = clock64();
  }
}

/// Of numbers below `count`.
int bits_of(int count) {
  int bits = 1;
  while (1 << bits < count) ++bits;
  return bits;
}

/// Every set has a number: the lines of all sets, three times over, whose number has `bit` as `value` says.
Lines drivers(const std::vector<Lines>& sets, int bit, int value) {
  Lines lines;
  for (int again = 0; again < 3; ++again)
    for (std::size_t set = 0; set < sets.size(); ++set)
      if (static_cast<int>(set >> bit & 1) == value) lines.insert(lines.end(), sets[set].begin(), sets[set].end());
  return lines;
}

/// The set of which it is a line: in all rounds but those that drive that set out it is near. Negative where that is
/// not clear of any bit.
int decoded(const std::vector<std::vector<std::uint16_t>>& took, std::size_t line) {
  constexpr int apart = 100;  // cycles
  int set = 0;
  for (std::size_t bit = 0; bit < took.size() / 2; ++bit) {
    const int longer = took[2 * bit + 1][line] - took[2 * bit][line];
    if (std::abs(longer) <= apart) return -1;
    set |= (longer > 0 ? 1 : 0) << bit;
  }
  return set;
}

/// Says which lines of a MiB fall into which of some sets of SM 0's partition. The MiB is read, then the lines of half
/// of the sets, which drive out what of the MiB falls into them, then the MiB again by the clock.
class Labels {
 public:
  explicit Labels(int count) : finder_(std::random_device{}()), sink_(1), cycles_(kChunkLines) {
    for (int set = 0; set < count; ++set) sets_.push_back(finder_.find());
    for (int round = 0; round < 2 * bits_of(count); ++round) {
      const Lines lines = drivers(sets_, round / 2, round % 2);
      sizes_.push_back(lines.size());
      lists_.emplace_back(lines);
    }
    std::vector<int> ranks;
    for (const SmPlace& sm : finder_.sms()) ranks.push_back(sm.side == finder_.sms()[0].side ? readers_++ : -1);
    rank_of_sm_.emplace_back(ranks);
    check(cudaFuncSetAttribute(read_lines, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
    check(cudaFuncSetAttribute(time_lines, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  }
  const L2SetFinder& finder() const { return finder_; }
  const std::vector<Lines>& sets() const { return sets_; }

  /// Calls f(line of the MiB, set) for each.
  template <class F>
  void of_mib(const std::uint8_t* mib, F&& f) const {
    const auto ctas = static_cast<unsigned>(finder_.sms().size());
    const int* const ranks = rank_of_sm_.front().data();
    const auto read_all = [&](const std::uint8_t* at, const std::uint32_t* list, std::size_t lines) {
      read_lines<<<ctas, kReaders, kSmemOneCtaAnSm>>>(at, ranks, readers_, list, 0, static_cast<int>(lines),
                                                      sink_.data());
    };
    std::vector<std::vector<std::uint16_t>> took;
    for (std::size_t round = 0; round < lists_.size(); ++round) {
      read_all(mib, nullptr, kChunkLines);
      read_all(finder_.buffer(), lists_[round].data(), sizes_[round]);
      time_lines<<<ctas, 32, kSmemOneCtaAnSm>>>(mib, ranks, readers_, 0, cycles_.data());
      check(cudaGetLastError());
      took.push_back(cycles_.download());
    }
    for (std::uint32_t line = 0; line < kChunkLines; ++line)
      if (const int set = decoded(took, line); set >= 0 && set < static_cast<int>(sets_.size())) f(line, set);
  }

 private:
  L2SetFinder finder_;
  std::vector<Lines> sets_;
  std::vector<DeviceArray<std::uint32_t>> lists_;
  std::vector<std::size_t> sizes_;
  std::vector<DeviceArray<int>> rank_of_sm_;  // one
  int readers_ = 0;
  DeviceArray<unsigned> sink_;
  DeviceArray<std::uint16_t> cycles_;
};

/// Of the finder's buffer, with whether a line's home is SM 0's partition.
void labels(int count) {
  const Labels labels(count);
  constexpr std::int64_t mibs = 256;
  const L2SetFinder& finder = labels.finder();
  const std::vector<std::uint8_t> homes = page_homes(finder.buffer(), mibs << 20, finder.sms());
  std::printf("line,set,home\n");
  for (std::int64_t mib = 0; mib < mibs; ++mib)
    labels.of_mib(finder.buffer() + (mib << 20), [&](std::uint32_t line, int set) {
      const auto at = static_cast<std::size_t>(mib * kChunkLines + line);
      const bool home = homes[at / (kPageBytes / kLineBytes)] == finder.sms()[0].side;
      std::printf("%zu,%d,%d\n", at, set, home ? 1 : 0);
    });
}

/// Of a further buffer, 1; and of the finder's, 0, two lines of each set.
void far_labels(int count, std::int64_t gib) {
  const Labels labels(count);
  const DeviceArray<std::uint8_t> buffer(static_cast<std::size_t>(gib) << 30);
  std::printf("buffer,line,set\n");
  for (int set = 0; set < count; ++set)
    for (const std::size_t i : {0, 1}) std::printf("0,%u,%d\n", labels.sets()[static_cast<std::size_t>(set)][i], set);
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    const auto mib = static_cast<std::int64_t>(random() % (static_cast<std::uint64_t>(gib) << 10));
    labels.of_mib(buffer.data() + (mib << 20), [&](std::uint32_t line, int set) {
      std::printf("1,%lld,%d\n", static_cast<long long>(mib * kChunkLines + line), set);
    });
  }
}

}  // namespace
}  // namespace attest::hardware

int main(int argc, char** argv) try {
  const auto positive = [&](int i, const char* name) {
    const int number = std::atoi(argv[i]);
    if (number < 1 || number > 100'000)
      throw std::runtime_error(std::string(name) + ": " + argv[i] + " is outside 1 to 100000");
    return number;
  };
  if (argc > 1 && std::string_view(argv[1]) == "victims")
    attest::hardware::victims();
  else if (argc > 3 && std::string_view(argv[1]) == "labels")
    attest::hardware::far_labels(positive(2, "sets"), positive(3, "GiB"));
  else if (argc > 2 && std::string_view(argv[1]) == "labels")
    attest::hardware::labels(positive(2, "sets"));
  else
    attest::hardware::measure();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "l2_set: %s\n", error.what());
  return 1;
}
