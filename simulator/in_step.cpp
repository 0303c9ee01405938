#include "in_step.h"

#include <cmath>
#include <cstdint>

#include "address.h"
#include "copy_time.h"

namespace attest {

bool keeps_in_step(const KernelPlan& plan, const DeviceSpec& device, bool pages) {
  const CopyTime keys = copy_time(plan, device, Operand::k, pages);
  return keys.cycles > 0 && keys.loads == 0;
}

InStepTimes in_step_times(bool pages) {
  // Of docs/results/h200-sm/in_step_ctas.csv: lag is the mean, with pages that of 32 key tiles (it is .1 to .2 after
  // 64); of_sm less what key tiles' own variation adds, mates less those that are as near by chance. apart and of_tile
  // are by notes of each key tile (h200-sm.md).
  return pages ? InStepTimes{.lag = 0.004, .apart = 0.006, .of_tile = 0, .of_sm = 0.0003, .mates = 1}
               : InStepTimes{.lag = 0.053, .apart = 0.009, .of_tile = 0.019, .of_sm = 0.0103, .mates = 0.4};
}

double varied_in_step(Slot& slot, const InStepTimes& times, double each, int tiles, int sharing, Noise& noise) {
  constexpr std::uint64_t of_tpcs = std::uint64_t{1} << 63;
  const auto tpc = static_cast<std::uint64_t>(slot.sm / 2) << 32 | of_tpcs;
  const bool with_mate = in_unit(mix(tpc)) < times.mates;
  const std::uint64_t place = with_mate ? tpc : static_cast<std::uint64_t>(slot.sm) << 32;
  const auto of_sm = [&](std::int64_t draw) {
    return deviate(in_unit(mix(place | static_cast<std::uint64_t>(draw + 1))));
  };
  const double before = slot.ahead;
  slot.ahead = times.apart * each * noise();
  const double lasting = sharing > 1 ? times.of_sm * of_sm(0) * tiles : 0,
               passing = times.of_tile * of_sm(++slot.draws) * std::sqrt(tiles);
  return each * (lasting + passing) + slot.ahead - before;
}

}  // namespace attest
