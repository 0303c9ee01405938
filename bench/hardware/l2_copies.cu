// What a partition of L2 has copies of, as the lines' home notes it: a directory whose entries take their copies with
// them when they must go. CSV to standard output.
//
//     l2_copies mates h200 40 31 > mates.csv    lines whose copies drive out that of a target, of 40 targets in 31 GiB
//     l2_copies mates h100 16 0 > mates.csv     of the first buffer that a process asks for, of 256 MiB
//     l2_copies plays h200 > plays.csv          accesses to lines of one directory set, one after the other
//     l2_copies gone h200 > gone.csv            the same of lines whose copies others drive out meanwhile
//
// Lines are chosen by the model's hash (simulator/l2_hash.h), which must be right for it; where in memory a further
// buffer begins is where targets go with lines of their own set and not with as many others.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "attest/hardware/l2_set_finder.cuh"
#include "hashed_buffer.cuh"
#include "turns.cuh"
#include "whole_number.h"

namespace attest::hardware {
namespace {

constexpr std::uint32_t kEntryLines = 5;  // bits in which the lines of an entry differ
constexpr std::size_t kAccesses = 1500;

/// For each target: one line in two of each entry, drawn at random, are read between two reads of the target, in as
/// many draws; how many of them there are follows what drives it out every second time. A mate is an entry both of
/// whose lines are there clearly more often when the target goes than when it stays.
class Mates {
 public:
  Mates(const std::string& device, std::int64_t gib)
      : sms_(locate_sms()),
        first_(kFirstBytes),
        own_(gib == 0 ? 1 : static_cast<std::size_t>(gib) << 30),
        gib_(gib),
        places_(device, buffer()),
        list_(std::size_t{1} << 20),
        latency_(2) {
    check(cudaFuncSetAttribute(read_between, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
    constexpr std::size_t mibs = 360;
    std::vector<std::uint32_t> chunks;
    for (std::uint32_t i = 0; i < (gib == 0 ? 256 : mibs); ++i)
      chunks.push_back(gib == 0 ? i : static_cast<std::uint32_t>(random_() % (static_cast<std::uint64_t>(gib) << 10)));
    std::ranges::sort(chunks);
    chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
    for (const std::uint32_t chunk : chunks) {
      const std::vector<std::uint8_t> homes =
          page_homes(buffer() + (static_cast<std::size_t>(chunk) << 20), 1 << 20, sms_);
      for (std::uint32_t line = 0; line < kLinesAMib; ++line)
        if (homes[line / (kPageBytes / kLineBytes)] != sms_[0].side)
          far_.push_back(chunk * static_cast<std::uint32_t>(kLinesAMib) + line);
    }
    places_.find_first(far_);
  }

  void of(int targets) {
    std::printf("target,mate\n");
    for (int i = 0; i < targets; ++i) {
      const std::uint32_t target = far_[random_() % far_.size()];
      const L2Hash::Place place = places_.of(target);
      Lines pool;
      for (const std::uint32_t line : far_)
        if (const L2Hash::Place p = places_.of(line);
            p.slice == place.slice && p.index != place.index && line % 2 == 0 && line >> 1 != target >> 1)
          pool.push_back(line);
      print_mates(target, pool);
    }
  }

 private:
  std::uint8_t* buffer() const { return gib_ == 0 ? first_.data() : own_.data(); }

  bool goes(const Lines& between, std::uint32_t target) const {
    check(cudaMemcpy(list_.data(), between.data(), between.size() * sizeof(between[0]), cudaMemcpyHostToDevice));
    read_between<<<static_cast<unsigned>(sms_.size()), kFinderThreads, kSmemOneCtaAnSm>>>(
        buffer(), list_.data(), static_cast<int>(between.size()), target, latency_.data());
    check(cudaGetLastError());
    return latency_.download()[0] > kNear;
  }

  void print_mates(std::uint32_t target, const Lines& pool) {
    constexpr int draws = 4000, first_draws = 200;
    std::vector<double> drawn(pool.size()), gone(pool.size());
    std::vector<std::uint8_t> in(pool.size());
    double share = 0.4, all_gone = 0;
    for (int draw = 0; draw < first_draws + draws; ++draw) {
      Lines some;
      for (std::size_t i = 0; i < pool.size(); ++i) {
        in[i] = static_cast<double>(random_() >> 11) * 0x1p-53 < share ? 1 : 0;
        if (in[i] != 0) some.push_back(pool[i]);
      }
      std::ranges::shuffle(some, random_);
      const bool out = goes(some, target);
      share = std::clamp(share * (out ? 0.995 : 1.005), 0.01, 0.95);
      if (draw < first_draws) continue;
      all_gone += out ? 1 : 0;
      for (std::size_t i = 0; i < pool.size(); ++i) drawn[i] += in[i], gone[i] += in[i] != 0 && out ? 1 : 0;
    }
    const double p = all_gone / draws;
    std::map<std::uint32_t, double> deviations;  // of how often the target goes with a line and without it
    for (std::size_t i = 0; i < pool.size(); ++i)
      deviations[pool[i]] = (gone[i] / drawn[i] - (all_gone - gone[i]) / (draws - drawn[i])) /
                            std::sqrt(p * (1 - p) * (1 / drawn[i] + 1 / (draws - drawn[i])));
    for (const auto& [line, z] : deviations)
      if (const auto other = deviations.find(line ^ 4);
          (line & 4) == 0 && other != deviations.end() && std::min(z, other->second) > 2.5 && z + other->second > 7)
        std::printf("%llu,%llu\n", static_cast<unsigned long long>(places_.in_memory(target)),
                    static_cast<unsigned long long>(places_.in_memory(line)));
    std::fflush(stdout);
  }

  std::vector<SmPlace> sms_;
  DeviceArray<std::uint8_t> first_, own_;
  std::int64_t gib_;
  HashedBuffer places_;
  DeviceArray<std::uint32_t> list_;
  DeviceArray<unsigned> latency_;
  std::mt19937_64 random_{3};
  Lines far_;
};

/// The entries of one directory set, as many as the first buffer has of any.
class Entries {
 public:
  static constexpr std::size_t wanted = 12, fillers = 18, filled = 5;

  explicit Entries(const std::string& device)
      : sms_(locate_sms()), buffer_(kFirstBytes), places_(device, buffer_.data()) {
    Lines all(kFirstBytes / kLineBytes);
    std::iota(all.begin(), all.end(), 0);
    places_.find_first(all);
    const std::vector<std::uint8_t> homes = page_homes(buffer_.data(), kFirstBytes, sms_);
    std::map<std::tuple<std::uint32_t, std::uint32_t, int>, Lines> of;
    for (std::uint32_t line = 0; line < static_cast<std::uint32_t>(kFirstBytes / kLineBytes); ++line) {
      if ((line & kEntryLines) != 0) continue;
      const L2Hash::Place p = places_.of(line);
      of[{p.slice, p.directory, p.home}].push_back(line);
    }
    const Lines& entries = std::ranges::max_element(of, {}, [](const auto& o) { return o.second.size(); })->second;
    if (entries.size() < wanted) throw std::runtime_error("too few entries of one directory set");
    home_side_ = homes[entries[0] / (kPageBytes / kLineBytes)];
    for (std::size_t i = 0; i < wanted; ++i)
      for (const std::uint32_t line : {0u, 1u, 4u, 5u}) lines_.push_back(entries[i] ^ line);
    for (std::size_t i = 0; i < filled; ++i) {
      const L2Hash::Place p = places_.of(entries[i]);
      const std::size_t end = lines_.size() + fillers;
      for (std::uint32_t line = 0; line < static_cast<std::uint32_t>(kFirstBytes / kLineBytes) && lines_.size() < end;
           ++line)
        if (const L2Hash::Place q = places_.of(line);
            q.home != p.home && q.index == p.index && q.slice == places_.copy_slice(p))
          lines_.push_back(line);
      if (lines_.size() < end) throw std::runtime_error("too few lines of one set");
    }
  }

  /// Actors are SMs of the entries' side (a) and of the other one (b). What each access took: n, near; f, from the
  /// other partition; m, from DRAM; - for a write.
  void print(const std::vector<Access>& accesses) const {
    const auto sm_of = [&](int side) {
      return static_cast<int>(std::ranges::find(sms_, side, [](const SmPlace& sm) { return int{sm.side}; }) -
                              sms_.begin());
    };
    const std::vector<std::uint16_t> cycles =
        take_turns(accesses, buffer_.data(), lines_, {sm_of(home_side_), sm_of(1 - home_side_)}, sms_);
    for (const Access& a : accesses)
      std::printf("%c%c%d ", 'a' + a.actor, a.kind == Kind::write ? 'w' : 'r', int{a.line});
    std::printf(",");
    for (std::size_t i = 0; i < accesses.size(); ++i)
      std::printf("%c", accesses[i].kind == Kind::write ? '-' : cycles[i] < kNear ? 'n' : cycles[i] < 650 ? 'f' : 'm');
    std::printf("\n");
  }

 private:
  std::vector<SmPlace> sms_;
  DeviceArray<std::uint8_t> buffer_;
  HashedBuffer places_;
  int home_side_ = 0;
  Lines lines_;  // four an entry, then those that drive out a copy of each of the first entries' first lines
};

void plays(const std::string& device) {
  const Entries entries(device);
  std::mt19937 random(5);
  std::printf("actors,entries,lines,writes,accesses,outcomes\n");
  for (const std::string actors : {"b", "ab"})
    for (const unsigned writes : {0u, 2u})
      for (const unsigned n : {6u, 7u, 8u, 10u})
        for (const unsigned lines : {1u, 2u, 4u}) {
          std::vector<std::uint8_t> of;
          for (unsigned entry = 0; entry < n; ++entry)
            for (unsigned i = 0; i < lines; ++i)
              of.push_back(static_cast<std::uint8_t>(4 * entry + (lines == 1 ? entry % 4 : lines == 2 ? 2 * i : i)));
          std::vector<Access> list;
          const auto put = [&](char actor, Kind kind, std::uint8_t line) {
            list.push_back({static_cast<std::uint16_t>(actor - 'a'), kind, line});
          };
          for (const char actor : actors)
            for (const std::uint8_t line : of) put(actor, Kind::read, line);
          while (list.size() < kAccesses)
            put(actors[random() % actors.size()], random() % 10 < writes ? Kind::write : Kind::read,
                of[random() % of.size()]);
          std::printf("%s,%u,%u,%u,", actors.c_str(), n, lines, writes);
          entries.print(list);
        }
}

void gone(const std::string& device) {
  const Entries entries(device);
  std::mt19937 random(5);
  std::printf("entries,accesses,outcomes\n");
  for (int i = 0; i < 12; ++i) {
    const unsigned n = 7 + static_cast<unsigned>(i) % 6;
    std::vector<Access> list;
    const auto put = [&](std::size_t line) { list.push_back({1, Kind::read, static_cast<std::uint8_t>(line)}); };
    for (unsigned entry = 0; entry < n; ++entry) put(std::size_t{4} * entry);
    while (list.size() < kAccesses) {
      if (random() % 12 != 0) {
        put(std::size_t{4} * (random() % n));
        continue;
      }
      const std::size_t of = random() % Entries::filled;
      for (std::size_t k = 0; k < Entries::fillers; ++k) put(4 * Entries::wanted + of * Entries::fillers + k);
    }
    std::printf("%u,", n);
    entries.print(list);
  }
}

}  // namespace
}  // namespace attest::hardware

int main(int argc, char** argv) try {
  using namespace attest::hardware;
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 4 && words[0] == "mates")
    Mates(words[1], whole_number(words[3], "GiB", 0, 31))
        .of(static_cast<int>(whole_number(words[2], "targets", 1, 10'000)));
  else if (words.size() == 2 && words[0] == "plays")
    plays(words[1]);
  else if (words.size() == 2 && words[0] == "gone")
    gone(words[1]);
  else
    throw std::runtime_error("needs mates DEVICE TARGETS GIB, plays DEVICE or gone DEVICE");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "l2_copies: %s\n", error.what());
  return 1;
}
