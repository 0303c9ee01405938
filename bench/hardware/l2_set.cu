// One set of L2, access by access: finds lines that fall into one set of the partition of SM 0, plays sequences of
// reads and writes on them, one after the other, and says how long each took. CSV to standard output.
//
//     l2_set > docs/results/h200-l2/one_set.csv
//     l2_set victims > docs/results/h100/set_victims.csv
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attest/hardware/l2_set_finder.cuh"
#include "turns.cuh"

namespace attest::hardware {
namespace {

constexpr std::size_t kWanted = 34;  // lines of the set
constexpr int kAccesses = 1500;

class Set {
 public:
  Set() : lines_(finder_.find()) { finder_.add(lines_, kWanted); }

  /// Actor 0 is an SM of the lines' side, actor 1 one of the other.
  std::vector<std::uint16_t> played(const std::vector<Access>& accesses) const {
    int far_sm = 0;
    while (finder_.sms()[static_cast<std::size_t>(far_sm)].side == finder_.sms()[0].side) ++far_sm;
    return take_turns(accesses, finder_.buffer(), lines_, {0, far_sm}, finder_.sms());
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

}  // namespace
}  // namespace attest::hardware

int main(int argc, char** argv) try {
  if (argc == 2 && std::string_view(argv[1]) == "victims")
    attest::hardware::victims();
  else if (argc == 1)
    attest::hardware::measure();
  else
    throw std::runtime_error(std::string(argv[1]) + ": is not victims, or stands before more");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "l2_set: %s\n", error.what());
  return 1;
}
