#include "combine_time.h"

#include <algorithm>
#include <cmath>

#include "attest/simulator/step_time.h"

namespace attest {

double combine_cycles(const CombineWork& work, const DeviceSpec& device) {
  if (work.rows == 0) return 0;
  // combine_paths.csv, and 40 registers a thread
  constexpr double row = 1328, turn = 487, weights = 198, waits_a_turn = 3, hit = 29;
  constexpr double rows_a_cta = 4, splits_a_turn = 4, splits_weighed = 32, ctas_an_sm = 12;
  const double waves = std::ceil(work.rows / rows_a_cta / (ctas_an_sm * static_cast<double>(device.num_sms)));
  const double l2 = device.l2_latency_cycles - hit,
               wait = l2 + work.from_dram * (device.dram_latency_cycles - device.l2_latency_cycles);
  const double turns = std::ceil(work.splits / splits_a_turn), weighed = std::ceil(work.splits / splits_weighed);
  const double warp =
      device.kernel_code_scale * (row + weighed * weights + turns * turn) + l2 + turns * waits_a_turn * wait;
  const double moved = work.bytes / (l2_bytes_per_clock(device) * static_cast<double>(device.num_sms));
  return device.kernel_launch_cycles + std::max(waves * (device.cta_launch_cycles + warp), moved);
}

}  // namespace attest
