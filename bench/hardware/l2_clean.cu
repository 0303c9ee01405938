// When lines of a set of L2 that were written go to DRAM: the same accesses to many sets, one after the other in each,
// and what DRAM writes and reads of them. CSV to standard output.
//
//     l2_clean h200 > l2_clean.csv
//     l2_clean h200 plays > l2_plays.csv    accesses at random, by both sides, of lines of both homes
//     l2_clean h200 gaps > l2_gaps.csv      accesses that come sooner or later one after the other
//
// An access is a letter, of a line of the set: written where it is a capital one, else read, behind a ! with
// evict_first and behind a ~ for the last time; by an SM of the set's side, or behind a 1 by one of the other side,
// until the next 0. Lines a to p have their home there; q to x have it on the other side, and the set keeps their
// copies. Before them all that was in the set, and in the other side's with its copies, is displaced by reads. Lines
// are chosen by the model's hash (simulator/l2_hash.h).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "attest/counters/counter_reader.h"
#include "attest/hardware/l2_set_finder.cuh"
#include "hashed_buffer.cuh"
#include "turns.cuh"

namespace attest::hardware {
namespace {

constexpr int kWarps = 32;
// lines of a set: a to p, q to x, and those of either side that fill it and the one with its copies before
constexpr int kOwn = 16, kOfOther = 8, kFilling = 16;
constexpr int kLinesASet = kOwn + kOfOther + 2 * kFilling;

/// Two CTAs, one on an SM of either side, go through the accesses together; a warp has one set in so many. `apart`: no
/// access begins before all of the one before are there, else a warp waits for its reads alone and for so many cycles
/// from one access to the next.
__global__ void __launch_bounds__(32 * kWarps, 1)
    go_through(std::uint8_t* buffer, const std::uint32_t* lines, int sets, const Access* accesses, int count, int sm_a,
               int sm_b, bool apart, int gap, unsigned* arrived, unsigned* sink) {
  const auto sm = static_cast<int>(sm_id());
  const int me = sm == sm_a ? 0 : sm == sm_b ? 1 : -1;
  if (me < 0) return;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  unsigned generation = 0;
  std::uint32_t sum = 0;
  const auto at = [&](int set, int line) { return buffer + kLineBytes * lines[set * kLinesASet + line] + 4 * lane; };
  const auto make = [&](const Access& a, int set) { sum += access(a.kind, at(set, a.line)); };
  if (apart) {
    for (int i = 0; i < count; ++i) {
      if (accesses[i].actor == me)
        for (int set = warp; set < sets; set += kWarps) make(accesses[i], set);
      if (sum == kNever) *sink = sum;
      __threadfence();
      grid_barrier(arrived, generation, 2);
    }
    return;
  }
  for (int set = warp; set < sets; set += kWarps) {
    const long long began = clock64();
    for (int i = 0; i < count; ++i) {
      while (clock64() - began < static_cast<long long>(i) * gap) {
      }
      if (accesses[i].actor == me) make(accesses[i], set);
      if (accesses[i].kind != Kind::write && sum == kNever) *sink = sum;
    }
  }
}

__global__ void read_all(const std::uint8_t* buffer, std::size_t lines, unsigned* sink) {
  std::uint32_t sum = 0;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += gridDim.x * blockDim.x)
    sum += read(buffer + kLineBytes * i);
  if (sum == kNever) *sink = sum;
}

class Cleaned : public attest::CountedWork {
 public:
  explicit Cleaned(const std::string& device)
      : sms_(locate_sms()),
        first_(kFirstBytes),
        places_(device, first_.data()),
        other_(kFirstBytes),
        arrived_(1),
        sink_(1) {
    Lines all(kFirstBytes / kLineBytes);
    std::iota(all.begin(), all.end(), 0);
    places_.find_first(all);
    const std::vector<std::uint8_t> homes = page_homes(first_.data(), kFirstBytes, sms_);
    struct SetLines {
      Lines own, of_other;
    };
    std::map<std::tuple<std::uint32_t, std::uint32_t>, SetLines> sets;
    for (const std::uint32_t line : all) {
      const L2Hash::Place p = places_.of(line);
      if (p.home == 0)
        sets[{p.index, p.slice}].own.push_back(line);
      else
        sets[{p.index, places_.copy_slice(p)}].of_other.push_back(line);
    }
    for (const auto& [place, lines] : sets) {
      const auto& [own, of_other] = lines;
      if (own.size() < kOwn + kFilling || of_other.size() < kOfOther + kFilling) continue;
      lines_.insert(lines_.end(), own.begin(), own.begin() + kOwn);
      lines_.insert(lines_.end(), of_other.begin(), of_other.begin() + kOfOther + kFilling);
      lines_.insert(lines_.end(), own.begin() + kOwn, own.begin() + kOwn + kFilling);
    }
    home_side_ = homes[lines_.at(0) / (kPageBytes / kLineBytes)];
    on_device_.emplace_back(lines_);
    check(cudaFuncSetAttribute(go_through, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  }
  void set(const std::string& text, int rounds, int sets, bool apart, int gap = 0) {
    if (static_cast<std::size_t>(sets) * kLinesASet > lines_.size()) throw std::runtime_error("too few sets");
    accesses_.clear();
    for (int i = 0; i < 2 * kFilling; ++i)
      accesses_.push_back({static_cast<std::uint16_t>(i < kFilling ? 1 : 0), Kind::read,
                           static_cast<std::uint8_t>(kOwn + kOfOther + i)});
    std::uint16_t actor = 0;
    for (int round = 0; round < rounds; ++round)
      for (Kind read = Kind::read; const char c : text)
        if (c == '0' || c == '1') {
          actor = static_cast<std::uint16_t>(c - '0');
        } else if (c == '!' || c == '~') {
          read = c == '!' ? Kind::read_evict_first : Kind::read_last;
        } else {
          accesses_.push_back({actor, c < 'a' ? Kind::write : std::exchange(read, Kind::read),
                               static_cast<std::uint8_t>((c | 32) - 'a')});
        }
    list_.clear();
    list_.emplace_back(accesses_);
    sets_ = sets, apart_ = apart, gap_ = gap;
  }
  void launch() override {
    const auto on = [&](int side) {
      return static_cast<int>(std::ranges::find(sms_, side, [](const SmPlace& sm) { return int{sm.side}; }) -
                              sms_.begin());
    };
    check(cudaMemset(arrived_.data(), 0, sizeof(unsigned)));
    go_through<<<static_cast<unsigned>(sms_.size()), 32 * kWarps, kSmemOneCtaAnSm>>>(
        first_.data(), on_device_[0].data(), sets_, list_[0].data(), static_cast<int>(accesses_.size()), on(home_side_),
        on(1 - home_side_), apart_, gap_, arrived_.data(), sink_.data());
    check(cudaGetLastError());
  }
  void wait() override { check(cudaDeviceSynchronize()); }
  void empty_l2() override {
    read_all<<<264, 1024>>>(other_.data(), kFirstBytes / kLineBytes, sink_.data());
    wait();
  }

 private:
  std::vector<SmPlace> sms_;
  DeviceArray<std::uint8_t> first_;
  HashedBuffer places_;
  DeviceArray<std::uint8_t> other_;
  DeviceArray<unsigned> arrived_, sink_;
  int home_side_ = 0;
  Lines lines_;
  std::vector<DeviceArray<std::uint32_t>> on_device_;  // one
  std::vector<Access> accesses_;
  std::vector<DeviceArray<Access>> list_;  // one
  int sets_ = 0;
  bool apart_ = true;
  int gap_ = 0;
};

/// Prints what DRAM writes and reads of each set, in lines.
class Rows {
 public:
  explicit Rows(const std::string& device) : work_(device), reader_({kWritten, kRead}) {
    std::printf("accesses,rounds,sets,apart,gap,written_lines,read_lines\n");
  }
  void row(const std::string& text, int rounds = 1, int sets = 4096, bool apart = true, int gap = 0) {
    work_.set(text, rounds, sets, apart, gap);
    const auto values = reader_.read(work_, false).at(0).values;
    const auto lines = [&](const char* bytes) { return values.at(bytes) / kLineBytes / sets; };
    std::printf("%s,%d,%d,%d,%d,%.4f,%.4f\n", text.c_str(), rounds, sets, apart ? 1 : 0, gap, lines(kWritten),
                lines(kRead));
    std::fflush(stdout);
  }

 private:
  static constexpr const char *kWritten = "dram__bytes_write.sum", *kRead = "dram__bytes_read.sum";
  Cleaned work_;
  attest::CounterReader reader_;
};

/// What a play is made of: how many of its lines have their home here, and there; of ten accesses how many write, read
/// with evict_first and read for the last time; of ten how many are by the other side.
struct Mix {
  unsigned own, of_other, writes, evict_first, last_uses, by_other;
};

std::string play_of(const Mix& mix, std::size_t accesses, std::mt19937& random) {
  std::string text;
  char actor = '0';
  for (std::size_t n = 0; n < accesses; ++n) {
    if (const char now = random() % 10 < mix.by_other ? '1' : '0'; now != actor) text += actor = now;
    const unsigned line = random() % (mix.own + mix.of_other), kind = random() % 10;
    const char letter = static_cast<char>(line < mix.own ? 'a' + line : 'a' + kOwn + (line - mix.own));
    if (kind < mix.writes)
      text += static_cast<char>(letter - 'a' + 'A');
    else if (kind < mix.writes + mix.evict_first)
      text += {'!', letter};
    else if (kind < mix.writes + mix.evict_first + mix.last_uses)
      text += {'~', letter};
    else
      text += letter;
  }
  return text;
}

/// So many lines of a set's own and of copies written, in three orders, then read.
void beside_copies(Rows& rows) {
  const std::string own = "ABCDEFGH", copies = "QRSTUVWX";
  for (std::size_t d = 3; d <= 8; ++d)
    for (std::size_t c = 1; c <= 8; ++c) {
      const std::string first = own.substr(0, d), second = copies.substr(0, c);
      std::string in_turn;
      for (std::size_t i = 0; i < 8; ++i) in_turn += first.substr(std::min(i, d), 1) + second.substr(std::min(i, c), 1);
      for (const std::string& all : {first + second, second + first, in_turn})
        for (const char* then : {"", "aaaa"}) rows.row(all + then);
    }
}

void play_all(const std::string& device) {
  Rows rows(device);
  beside_copies(rows);
  std::mt19937 random(1);
  const std::vector<Mix> mixes = {{12, 0, 5, 0, 0, 0}, {10, 8, 5, 0, 0, 0}, {12, 0, 5, 0, 0, 5}, {10, 8, 5, 0, 0, 5},
                                  {12, 0, 5, 0, 3, 0}, {10, 8, 5, 0, 3, 5}, {12, 0, 5, 3, 0, 0}, {10, 8, 5, 3, 0, 5},
                                  {14, 8, 3, 0, 2, 3}, {16, 8, 8, 0, 0, 5}, {9, 8, 9, 0, 0, 2},  {4, 8, 7, 0, 1, 5}};
  rows.row("");
  for (const std::size_t accesses : {24, 48, 96})
    for (int n = 0; n < 6; ++n)
      for (const Mix& mix : mixes) rows.row(play_of(mix, accesses, random));
}

/// How soon a line must be written again for its cleaning to wait for that.
void measure_gaps(const std::string& device) {
  Rows rows(device);
  constexpr int rounds = 12, sets = 2048;
  for (const char* text :
       {"", "ABCDEFGHI", "ABCDEFGHIJ", "ABCDEFGHIJK", "AaBbCcDdEeFfGgHhIi", "AeBfCgDhEiFaGbHcId", "ABCDEFGHIabcdefghi"})
    for (const int gap : {0, 50, 100, 150, 200, 300, 400, 500, 600, 800, 1000, 1500, 2000, 3000})
      rows.row(text, rounds, sets, false, gap);
}

void measure(const std::string& device) {
  Rows rows(device);
  const auto row = [&](const std::string& text, int rounds = 1, int sets = 4096, bool apart = true) {
    rows.row(text, rounds, sets, apart);
  };
  const std::string letters = "ABCDEFGHIJKLMNOP", small = "abcdefghijklmnop";
  row("");
  row("");
  const auto in_turn = [&](std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += std::string{letters[i], small[i]};
    return text;
  };
  const auto behind = [&](std::size_t n, std::size_t lag) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += std::string{letters[i], small[(i + n - lag) % n]};
    return text;
  };
  for (const bool apart : {true, false}) {
    const int sets = apart ? 4096 : 8192;
    for (std::size_t n = 6; n <= 14; ++n)
      for (const int rounds : {1, 2, 3, 4, 6, 8, 12}) {
        row(letters.substr(0, n), rounds, sets, apart);
        row(letters.substr(0, n) + small.substr(0, n), rounds, sets, apart);
        if (rounds == 4 || rounds == 8 || rounds == 12) row(in_turn(n), rounds, sets, apart);
        if (rounds == 4 || rounds == 8 || rounds == 12) row(behind(n, n / 2), rounds, sets, apart);
        if (rounds == 4 || rounds == 8 || rounds == 12) row("1" + letters.substr(0, n), rounds, sets, apart);
        if (rounds == 4 || rounds == 8 || rounds == 12)
          row("1" + letters.substr(0, n) + small.substr(0, n), rounds, sets, apart);
      }
  }
  // the eighth, and accesses that follow it
  for (const std::string more : {"a",   "aa", "aaa", "h",   "hh", "hhh", "i",  "ii",  "iii", "iiii", "A",  "AA",
                                 "AAA", "H",  "HH",  "HHH", "1a", "1aa", "1i", "1ii", "1A",  "1AA",  "1H", "1HH"}) {
    row("ABCDEFG" + more);
    row("ABCDEFGH" + more);
    row("ABCDEFGHI" + more);
  }
  for (const int sets : {32, 256, 1024, 4096}) row("ABCDEFGHIJ", 8, sets);
}

}  // namespace
}  // namespace attest::hardware

int main(int argc, char** argv) try {
  using namespace attest::hardware;
  const std::string_view what = argc == 3 ? argv[2] : "";
  if (argc != 2 && what != "plays" && what != "gaps")
    throw std::runtime_error("needs a device, h100 or h200, and plays, gaps or nothing behind it");
  (what == "plays" ? play_all : what == "gaps" ? measure_gaps : measure)(argv[1]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "l2_clean: %s\n", error.what());
  return 1;
}
