// Lines that fall into one set of the L2 partition of SM 0, by group testing: those without which a target stays in L2
// (P. Vila, B. Koepf, J. F. Morales, "Theory and Practice of Finding Eviction Sets", 2019).
#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "attest/hardware/device.h"
#include "attest/hardware/placement.h"

namespace attest::hardware {

inline constexpr std::int64_t kLineBytes = 128;
inline constexpr unsigned kNear = 460;  // cycles: a home line takes up to 370 from its own side, DRAM 546 and more
inline constexpr std::uint32_t kNever = 12345;  // the buffer holds zeros

inline constexpr int kFinderThreads = 1024, kUnroll = 4;

__device__ inline std::uint32_t read(const std::uint8_t* at) {
  std::uint32_t x;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
  return x;
}

/// On one SM: reads the target and then all lines, and says in latency[0] what the target then takes.
static __global__ void __launch_bounds__(kFinderThreads, 1)
    read_between(const std::uint8_t* buffer, const std::uint32_t* lines, int count, std::uint32_t target,
                 unsigned* latency) {
  if (sm_id() != 0) return;
  const std::uint8_t* const at = buffer + kLineBytes * target;
  const std::uint8_t* const its_page = buffer + kLineBytes * (target ^ 16);  // whose translation is wanted
  std::uint32_t sum = 0;
  if (threadIdx.x == 0) sum += read(at);
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kUnroll * kFinderThreads)
    for (int u = 0; u < kUnroll; ++u)
      if (i + u * kFinderThreads < count) sum += read(buffer + kLineBytes * lines[i + u * kFinderThreads]);
  if (sum != 0) latency[1] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (read(its_page) == kNever) __trap();  // a branch on what is read keeps the clock behind it
  const long long began = clock64();
  if (read(at + (began == kNever ? 4 : 0)) == kNever) __trap();
  latency[0] = static_cast<unsigned>(clock64() - began);
}

/// Numbers of lines of the buffer.
using Lines = std::vector<std::uint32_t>;

class L2SetFinder {
 public:
  explicit L2SetFinder(std::uint32_t seed = 1)
      : sms_(locate_sms()), buffer_(kBytes), on_device_(kPool), latency_(2), random_(seed) {
    constexpr std::int64_t lines_a_page = kPageBytes / kLineBytes;
    const std::vector<std::uint8_t> homes = page_homes(buffer_.data(), kBytes, sms_);
    for (std::uint32_t line = 0; line < kBytes / kLineBytes; ++line)
      if (homes[line / lines_a_page] == sms_[0].side) home_.push_back(line);
    check(cudaFuncSetAttribute(read_between, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
  }
  std::uint8_t* buffer() const { return buffer_.data(); }
  const std::vector<SmPlace>& sms() const { return sms_; }

  /// 16 lines of a set, and the target that they drive out.
  Lines find() {
    for (int tries = 0; tries < 20; ++tries) {
      std::shuffle(home_.begin(), home_.end(), random_);
      target_ = home_.back();
      const Lines pool(home_.begin(), home_.begin() + kPool);
      if (!evict(pool)) continue;
      Lines lines = fewest(pool);
      if (!drive_out(lines)) continue;
      lines.push_back(target_);
      return lines;
    }
    throw std::runtime_error(
        "no set found in 20 tries: 450,000 lines of one side do not turn it over, or others use L2");
  }
  /// Further ones of the set that find() found last, until there are so many: those that drive the target out in place
  /// of the last of its 16.
  void add(Lines& lines, std::size_t wanted) const {
    const Lines all_but_one(lines.begin(), lines.begin() + kWays - 1);
    constexpr std::size_t step = 1024;
    for (std::size_t first = 0; first + step <= kPool && lines.size() < wanted; first += step) {
      std::size_t from = first, to = first + step;
      const auto with = [&](std::size_t a, std::size_t b) {
        Lines some = all_but_one;
        for (std::size_t i = a; i < b; ++i)
          if (std::find(lines.begin(), lines.end(), home_[i]) == lines.end()) some.push_back(home_[i]);
        return some;
      };
      if (!evict(with(from, to))) continue;
      while (to - from > 1) (evict(with(from, (from + to) / 2)) ? to : from) = (from + to) / 2;
      if (evict(with(from, to))) lines.push_back(home_[from]);
    }
    if (lines.size() < wanted) throw std::runtime_error("too few lines of one set");
  }

 private:
  static constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  static constexpr std::ptrdiff_t kPool = 450'000, kWays = 16;  // lines of one home that are looked through

  /// Whether reading them drives the target out, in two of three tries where they are few.
  bool evict(const Lines& lines) const {
    const int tries = lines.size() < 2048 ? 3 : 1;
    int votes = 0;
    for (int i = 0; i < tries; ++i) {
      check(cudaMemcpy(on_device_.data(), lines.data(), lines.size() * sizeof(lines[0]), cudaMemcpyHostToDevice));
      read_between<<<static_cast<unsigned>(sms_.size()), kFinderThreads, kSmemOneCtaAnSm>>>(
          buffer_.data(), on_device_.data(), static_cast<int>(lines.size()), target_, latency_.data());
      check(cudaGetLastError());
      votes += latency_.download()[0] > kNear ? 1 : 0;
    }
    return 2 * votes > tries;
  }
  /// As few of them as drive the target out: of 17 parts, 16 of which do, one is left out at a time.
  Lines fewest(Lines lines) const {
    constexpr std::size_t parts = kWays + 1;
    for (std::size_t part = 0, kept = 0; lines.size() > 1 && kept < parts;) {
      const std::size_t n = std::min(parts, lines.size());
      part %= n;
      const auto at = [&](std::size_t p) { return lines.begin() + static_cast<std::ptrdiff_t>(lines.size() * p / n); };
      Lines rest(lines.begin(), at(part));
      rest.insert(rest.end(), at(part + 1), lines.end());
      if (evict(rest))
        lines = rest, kept = 0;
      else
        ++part, ++kept;
    }
    return lines;
  }
  /// Whether they are 16 that do, and none is too many.
  bool drive_out(const Lines& lines) const {
    if (lines.size() != kWays || !evict(lines)) return false;
    for (const std::ptrdiff_t out : {std::ptrdiff_t{0}, kWays / 2, kWays - 1}) {
      Lines rest = lines;
      rest.erase(rest.begin() + out);
      if (evict(rest)) return false;
    }
    return true;
  }

  std::vector<SmPlace> sms_;
  DeviceArray<std::uint8_t> buffer_;
  DeviceArray<std::uint32_t> on_device_;
  DeviceArray<unsigned> latency_;
  std::mt19937 random_;
  Lines home_;  // of SM 0's side
  std::uint32_t target_ = 0;
};

}  // namespace attest::hardware
