// Lines of a buffer by the model's hash of sets (simulator/l2_hash.h), which must be right for them, and where in
// memory the buffer begins.
#pragma once
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "attest/hardware/l2_set_finder.cuh"
#include "attest/simulator/device.h"
#include "l2_hash.h"

namespace attest::hardware {

inline constexpr std::size_t kFirstBytes = std::size_t{256} << 20;  // of the first buffer that a process asks for
inline constexpr std::uint64_t kLinesAMib = (1 << 20) / kLineBytes;

class HashedBuffer {
 public:
  /// `device` is h200 or h100.
  HashedBuffer(const std::string& device, const std::uint8_t* buffer) : hash_(load_device(device)), buffer_(buffer) {}
  const L2Hash& hash() const { return hash_; }
  std::uint64_t in_memory(std::uint64_t line) const { return first_ + line; }
  L2Hash::Place of(std::uint64_t line) const { return of_memory(in_memory(line)); }
  L2Hash::Place of_memory(std::uint64_t at) const {
    if (at / L2Hash::block_lines != block_at_) {
      block_at_ = at / L2Hash::block_lines;
      block_ = hash_.block(block_at_);
    }
    return hash_.place(block_, static_cast<std::uint32_t>(at % L2Hash::block_lines));
  }
  /// The slice in which the other partition keeps its copy.
  std::uint32_t copy_slice(const L2Hash::Place& p) const { return hash_.slice_of_copy(p.slice); }

  /// Looks for the place, a multiple of 2 MiB below `most`, from which on some of these lines, of all of the buffer or
  /// of one home, go with those that share their sets then, and stay with as many of their slice that do not.
  void find_first(const Lines& lines, std::uint64_t most_mib = 4096) {
    const DeviceArray<std::uint32_t> list(lines.size());
    const DeviceArray<unsigned> latency(2);
    const auto ctas = static_cast<unsigned>(locate_sms().size());
    check(cudaFuncSetAttribute(read_between, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemOneCtaAnSm));
    const auto goes = [&](const Lines& between, std::uint32_t target) {
      check(cudaMemcpy(list.data(), between.data(), between.size() * sizeof(between[0]), cudaMemcpyHostToDevice));
      read_between<<<ctas, kFinderThreads, kSmemOneCtaAnSm>>>(buffer_, list.data(), static_cast<int>(between.size()),
                                                              target, latency.data());
      check(cudaGetLastError());
      return latency.download()[0] > kNear;
    };
    std::mt19937 random(3);
    for (std::uint64_t mib = 0; mib < most_mib; mib += 2) {
      first_ = mib * kLinesAMib;
      int agree = 0, tries = 0;
      while (agree == tries && tries < 6) {
        const std::uint32_t target = lines[random() % lines.size()];
        const L2Hash::Place place = of(target);
        constexpr std::size_t enough = 24, most = 48;
        Lines same_set, others;
        for (const std::uint32_t line : lines)
          if (const L2Hash::Place p = of(line); p.slice == place.slice && p.home == place.home && line != target)
            if (Lines& to = p.index == place.index ? same_set : others; to.size() < most) to.push_back(line);
        if (same_set.size() < enough) continue;
        others.resize(std::min(others.size(), same_set.size()));
        ++tries;
        agree += goes(same_set, target) && !goes(others, target) ? 1 : 0;
      }
      if (agree == tries) return;
    }
    throw std::runtime_error("lines are not in the sets that the model has for them");
  }

 private:
  L2Hash hash_;
  const std::uint8_t* buffer_;
  std::uint64_t first_ = 0;        // line of memory
  mutable L2Hash::Block block_{};  // number block_at_
  mutable std::uint64_t block_at_ = ~std::uint64_t{0};
};

}  // namespace attest::hardware
