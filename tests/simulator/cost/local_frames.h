// Where frames of local memory lie in a sampled L2, of CTAs of four warps, two an SM.
#pragma once
#include <cstdint>
#include <vector>

#include "address.h"
#include "attest/simulator/device.h"
#include "attest/simulator/l2_cache.h"
#include "attest/simulator/tile_walk.h"
#include "l2_probe.h"
#include "memory_map.h"

namespace attest {

/// Where frames of so many words lie, of CTAs of four warps, two an SM, warp by warp. The first half of the CTAs is on
/// the SMs in turn, then the others.
inline constexpr int frame_sms = 132, frame_ctas = 2 * frame_sms, frame_warps = 4;
inline int side_of(int cta) { return sm_sides().at(static_cast<std::size_t>(cta % frame_sms)); }
/// What its SM gets of L2 beside the others.
inline double share_of(int cta, const DeviceSpec& device) {
  const std::size_t sm = static_cast<std::size_t>(cta % frame_sms);
  return device.l2_shares[sm * device.l2_shares.size() / frame_sms];
}
template <class F>  // of an address
void each_word(int words, int frame, const MemoryMap& memory, F&& f) {
  for (int cta = 0; cta < frame_ctas; ++cta)
    for (int warp = 0; warp < frame_warps; ++warp)
      for (int word = 0; word < words; ++word)
        f(cta, memory.word(cta % frame_sms, cta / frame_sms * frame_warps + warp, word, frame));
}

/// Their lines in a sampled L2, of the first words of a frame of 160; those that are not followed have no sectors.
inline std::vector<CachedLine> frame_lines(int words, const LineSampler& sampler, const MemoryMap& memory) {
  constexpr int frame = 160;
  std::vector<CachedLine> lines;
  each_word(words, frame, memory, [&](int, std::int64_t at) {
    lines.push_back({});
    lines.back().sectors = 0;
    sampler.for_lines(at, at + LineSampler::line_bytes, [&](const CachedLine& line) { lines.back() = line; });
  });
  return lines;
}
inline L2Cache l2_of(const DeviceSpec& device, const LineSampler& sampler) {
  return {2, sampler.sets(), static_cast<int>(device.l2_ways), static_cast<int>(device.l2_dirty_ways),
          sampler.directory_sets()};
}

/// What others leave dirty before a launch.
inline void leave_dirty(const LineSampler& sampler, L2Cache& cache) {
  constexpr std::int64_t others = std::int64_t{1} << 40;
  int side = 0;
  sampler.for_lines(others, others + TileWalkOptions{}.dirty_bytes_at_start,
                    [&](const CachedLine& line) { cache.write(line, side ^= 1); });
}

}  // namespace attest
