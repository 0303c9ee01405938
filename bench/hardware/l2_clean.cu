// When lines of a set of L2 that were written go to DRAM: the same accesses to many sets, one after the other in each,
// and what DRAM writes of them. CSV to standard output.
//
//     l2_clean h200 > l2_clean.csv
//
// An access is a letter, of a line of the set: written where it is a capital one, else read; by an SM of the lines'
// home side, or behind a 1 by one of the other side, until the next 0. Before them all that was in the set is displaced
// by reads. Lines are chosen by the model's hash (simulator/l2_hash.h).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "attest/counters/counter_reader.h"
#include "attest/hardware/l2_set_finder.cuh"
#include "hashed_buffer.cuh"
#include "turns.cuh"

namespace attest::hardware {
namespace {

constexpr int kWarps = 32, kFilling = 16, kLinesASet = 32;  // of which the last ones fill the set before

/// Two CTAs, one on an SM of either side, go through the accesses together; a warp has one set in so many. `apart`: no
/// access begins before all of the one before are there, else a warp waits for its reads alone.
__global__ void __launch_bounds__(32 * kWarps, 1)
    go_through(std::uint8_t* buffer, const std::uint32_t* lines, int sets, const Access* accesses, int count, int sm_a,
               int sm_b, bool apart, unsigned* arrived, unsigned* sink) {
  const auto sm = static_cast<int>(sm_id());
  const int me = sm == sm_a ? 0 : sm == sm_b ? 1 : -1;
  if (me < 0) return;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  unsigned generation = 0;
  std::uint32_t sum = 0;
  const auto at = [&](int set, int line) { return buffer + kLineBytes * lines[set * kLinesASet + line] + 4 * lane; };
  const auto make = [&](const Access& a, int set) {
    if (a.kind == Kind::write)
      asm volatile("st.global.cg.u32 [%0], %1;" ::"l"(at(set, a.line)), "r"(0) : "memory");
    else
      sum += read(at(set, a.line));
  };
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
  for (int set = warp; set < sets; set += kWarps)
    for (int i = 0; i < count; ++i) {
      if (accesses[i].actor == me) make(accesses[i], set);
      if (accesses[i].kind == Kind::read && sum == kNever) *sink = sum;
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
    std::map<std::tuple<std::uint32_t, std::uint32_t>, Lines> of;
    for (const std::uint32_t line : all)
      if (const L2Hash::Place p = places_.of(line); p.home == 0) of[{p.index, p.slice}].push_back(line);
    home_side_ = homes[of.begin()->second[0] / (kPageBytes / kLineBytes)];
    for (const auto& [place, lines] : of) {
      if (lines.size() < kLinesASet) continue;
      lines_.insert(lines_.end(), lines.begin(), lines.begin() + kLinesASet);
    }
    on_device_.emplace_back(lines_);
    check(cudaFuncSetAttribute(go_through, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  }
  void set(const std::string& text, int rounds, int sets, bool apart) {
    if (static_cast<std::size_t>(sets) * kLinesASet > lines_.size()) throw std::runtime_error("too few sets");
    accesses_.clear();
    for (int i = 0; i < kFilling; ++i)
      accesses_.push_back({0, Kind::read, static_cast<std::uint8_t>(kLinesASet - kFilling + i)});
    std::uint16_t actor = 0;
    for (int round = 0; round < rounds; ++round)
      for (const char c : text)
        if (c == '0' || c == '1')
          actor = static_cast<std::uint16_t>(c - '0');
        else
          accesses_.push_back({actor, c < 'a' ? Kind::write : Kind::read, static_cast<std::uint8_t>((c | 32) - 'a')});
    list_.clear();
    list_.emplace_back(accesses_);
    sets_ = sets, apart_ = apart;
  }
  void launch() override {
    const auto on = [&](int side) {
      return static_cast<int>(std::ranges::find(sms_, side, [](const SmPlace& sm) { return int{sm.side}; }) -
                              sms_.begin());
    };
    check(cudaMemset(arrived_.data(), 0, sizeof(unsigned)));
    go_through<<<static_cast<unsigned>(sms_.size()), 32 * kWarps, kSmemOneCtaAnSm>>>(
        first_.data(), on_device_[0].data(), sets_, list_[0].data(), static_cast<int>(accesses_.size()), on(home_side_),
        on(1 - home_side_), apart_, arrived_.data(), sink_.data());
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
};

void measure(const std::string& device) {
  Cleaned work(device);
  attest::CounterReader reader({"dram__bytes_write.sum"});
  std::printf("accesses,rounds,sets,apart,written_lines\n");
  const auto row = [&](const std::string& text, int rounds = 1, int sets = 4096, bool apart = true) {
    work.set(text, rounds, sets, apart);
    const double bytes = reader.read(work, false).at(0).values.at("dram__bytes_write.sum");
    std::printf("%s,%d,%d,%d,%.4f\n", text.c_str(), rounds, sets, apart ? 1 : 0, bytes / kLineBytes / sets);
    std::fflush(stdout);
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
  if (argc != 2) throw std::runtime_error("needs a device: h100 or h200");
  measure(argv[1]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "l2_clean: %s\n", error.what());
  return 1;
}
