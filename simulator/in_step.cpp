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

InStepTimes in_step_times(bool pages, bool at_launch) {
  // of docs/results/h200-sm: of_sm and mates of in_step_ctas.csv, less what key tiles' own variation adds and what is
  // as near by chance; the others of in_step_lags.csv, those of pages of in_step_pages.csv and, where they do not begin
  // with a launch, of in_step_gpcs.csv; of_tile, and how far pages' are apart at a launch, by notes of each key tile
  // (h200-sm.md)
  if (pages && at_launch)  // after 32 key tiles, of twelve launches, all GPCs together
    return {.lag_at_launch = 0.004,
            .lag = 0.004,
            .apart = 0.0085,
            .older_does_not_vary = true,
            .of_sm = 0.0011,
            .mates = 0.95};
  if (pages)
    return {.lag_at_launch = 0.004,
            .lag = 0.09,
            .apart = 0.042,
            .older_does_not_vary = true,
            .at_begin = 0.075,
            .of_gpc = 0.0038,
            .mates = 0.52};
  return {.lag_at_launch = 0.05,
          .lag = 0.05,
          .apart_at_first = 0.008,
          .apart = 0.024,
          .spreads_in = 38,
          .of_tile = 0.019,
          .of_sm = 0.0103,
          .mates = 0.4};
}

double InStepTimes::behind(double part) const {
  return std::abs(lag + (older_does_not_vary ? 1 : std::sqrt(2.0)) * apart * deviate(part));
}

double varied_in_step(Slot& slot, const InStepTimes& times, double each, int tiles, int sharing, Noise& noise) {
  constexpr std::uint64_t of_gpcs = std::uint64_t{1} << 62, of_tpcs = of_gpcs << 1;
  const std::uint64_t of_launch = noise.launch() << 48;  // in each it is another SM that is slow
  const auto tpc = static_cast<std::uint64_t>(slot.sm / 2) << 32 | of_tpcs | of_launch;
  const bool with_mate = in_unit(mix(tpc)) < times.mates;
  const std::uint64_t place = with_mate ? tpc : static_cast<std::uint64_t>(slot.sm) << 32 | of_launch;
  const auto of_sm = [&](std::int64_t draw) {
    return deviate(in_unit(mix(place | static_cast<std::uint64_t>(draw + 1))));
  };
  const double before = slot.ahead, mean = (times.lag - times.lag_at_launch) * slot.number * each;
  const bool first = slot.position - tiles == slot.walk.first;
  if (times.older_does_not_vary && slot.number == 0) {
    slot.ahead = 0;
  } else {
    const double kept = times.spreads_in == 0 ? 0 : std::exp(-tiles / times.spreads_in);
    const double from = first ? times.apart_at_first * each * noise() : before - mean;
    slot.ahead = mean + kept * from + std::sqrt(1 - kept * kept) * times.apart * each * noise();
  }
  const double of_gpc = deviate(in_unit(mix(static_cast<std::uint64_t>(slot.gpc) << 32 | of_gpcs | of_launch))),
               lasting = (sharing > 1 ? times.of_sm * of_sm(0) : 0) * tiles + times.of_gpc * of_gpc * tiles,
               passing = std::hypot(times.of_tile * std::sqrt(tiles), first ? times.at_begin : 0) * of_sm(++slot.draws);
  return each * (lasting + passing) + slot.ahead - before;
}

}  // namespace attest
