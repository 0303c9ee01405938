// Where a walk's frames of local memory lie, and which sets of L2 are followed for it.
#include <algorithm>
#include <cmath>

#include "set_choice.h"
#include "spill_uses.h"
#include "traffic.h"

namespace attest {

namespace {

constexpr float before_one = 0x1.fffffep-1F;
constexpr std::uint32_t of_frames = 0xA5A5A5A4;  // an entry's lines still differ in the two lowest bits alone

}  // namespace

LineSampler Traffic::sampler_of_frames(int sampling) const {
  if (frame_.of_tile == 0 || sampling == 1 || !L2Hash::known(device_)) return {device_, sampling};
  const LineSampler all(device_, 1);
  const auto sets_a_side = static_cast<std::size_t>(all.sets());
  std::vector<int> lines(static_cast<std::size_t>(device_.l2_partitions) * sets_a_side), live = lines,
                                                                                         from_afar = lines;
  std::vector<double> live_on_average(lines.size());
  std::int64_t of_all = 0, beyond = 0;
  const std::vector<double> parts = live_parts(spill_uses_.back().whole, frame_.words);
  std::vector<int> stores(parts.size());  // in a key tile
  for (const SpillUse& use : spill_uses_.back().whole)
    stores[static_cast<std::size_t>(use.word)] += use.kind == SpillUse::Kind::store ? 1 : 0;
  for (int slot = 0; slot < schedule_.slots(); ++slot)
    for (std::int64_t warp = 0; warp < warps_of_slot(); ++warp)
      for (std::int64_t word = 0; word < frame_.words; ++word) {
        const double part = parts[static_cast<std::size_t>(word)];
        if (part == 0) continue;
        const std::size_t set =
            all.whole_set(address_of(schedule_.sm(slot), slot / schedule_.slots_a_round(), warp, word));
        ++of_all, beyond += lines[set]++ >= static_cast<int>(device_.l2_dirty_ways) ? 1 : 0;
        live_on_average[set] += part;
        if (static_cast<int>(set / sets_a_side) != schedule_.side(slot))
          from_afar[set] += stores[static_cast<std::size_t>(word)];
      }
  std::ranges::transform(live_on_average, live.begin(), [](double n) { return static_cast<int>(std::lround(n)); });
  SetChoice choice(L2Hash(device_), sampling);
  std::vector counts{lines, live};
  if (beyond <= of_all / 100) counts.push_back(from_afar);
  choice.match(counts);
  return {device_, choice};
}

std::int64_t Traffic::address_of(int sm, int of_sm, std::int64_t warp, std::int64_t word) const {
  const std::int64_t of_cta = plan_.num_warps;
  return memory_.word(schedule_.number_on_device(sm) + warp / of_cta, of_sm * of_cta + warp % of_cta, word,
                      local_words());
}

std::int64_t Traffic::warps_of_slot() const { return std::int64_t{plan_.cluster} * plan_.num_warps; }

std::int64_t Traffic::local_words() const {
  const std::int64_t others = plan_.cluster * (grid_.start_lines() + plan_.producer_spill_sectors);
  return frame_.words + (others + warps_of_slot() - 1) / warps_of_slot();
}

// Where no order is known, words of key tiles are the first of a frame, those of a CTA's life the last ones.
void Traffic::give_local_memory(Slot& slot, int of_sm) const {
  const std::int64_t warps = warps_of_slot();
  const std::int64_t frame = warps * frame_.words, of_start = plan_.cluster * grid_.start_lines();
  const std::int64_t producer = std::int64_t{plan_.cluster} * plan_.producer_spill_sectors;
  const auto give = [&](std::vector<CachedLine>& to, std::int64_t at, std::uint8_t sectors = 15) {
    const std::int64_t word = address_of(slot.sm, of_sm, at % warps, at / warps);
    sampler_.for_lines(word, word + LineSampler::line_bytes, [&](CachedLine line) {
      line.tag ^= of_frames;  // tensors that begin elsewhere, and larger frames, may have addresses of the other's
      line.sectors = sectors;
      to.push_back(line);
    });
  };
  const auto spilled = [&](const std::vector<SpillUse>& uses) {
    std::vector<SpilledLine> spill;
    for (const SpillUse& use : uses)
      for (std::int64_t warp = 0; warp < warps; ++warp) {
        std::vector<CachedLine> lines;  // one, or none that is followed
        give(lines, use.word * warps + warp);
        for (const CachedLine& line : lines)
          if ((line.tag ^ of_frames) < use.part * 0x1p32)
            spill.push_back(
                {line, use.kind, static_cast<std::uint8_t>(warp), std::min(static_cast<float>(use.at), before_one)});
      }
    return spill;
  };
  for (const SpillUses& of : spill_uses_)
    slot.spill.push_back({spilled(of.whole), spilled(of.masked), spilled(of.first_whole), spilled(of.first_masked),
                          spilled(of.begin), spilled(of.end)});
  const std::int64_t parked = plan_.cluster * grid_.parked_lines();
  const std::int64_t always = parked - std::min(parked, plan_.cluster * grid_.entering_lines());
  for (std::int64_t i = 0; i < parked; ++i)
    give(i >= parked - warps * frame_.in_part ? slot.in_part
         : i < always                         ? slot.parked
                                              : slot.entering,
         frame - 1 - i % frame);
  for (std::int64_t i = 0; i < of_start; ++i) give(slot.start, frame + i);
  for (std::int64_t i = 0; i < producer; ++i) give(slot.producer, frame + of_start + i, 1);
}

}  // namespace attest
