#include "attest/simulator/utilisation.h"

#include <algorithm>

namespace attest {

std::string bound_of(const std::vector<Utilisation>& utilisation) {
  const auto busiest = std::max_element(utilisation.begin(), utilisation.end(),
                                        [](auto& a, auto& b) { return a.fraction < b.fraction; });
  if (busiest == utilisation.end()) return "nothing to do";
  return busiest->fraction < 1.0 / 3 ? "latency" : std::string(busiest->resource);
}

std::vector<Utilisation> utilisation_of(const BusyCycles& work, double cycles, const DeviceSpec& device) {
  if (cycles == 0) return {};
  const double seconds = cycles / device.sm_clock_hz;
  return {{"tensor", work.tensor / cycles},
          {"exp", work.exp / cycles},
          {"FMA", work.fma / cycles},
          {"ALU", work.alu / cycles},
          {"issue", work.issue / cycles},
          {"shared memory", work.smem / cycles},
          {"L2", work.l2_bytes / seconds / device.l2_bytes_per_second},
          {"DRAM", work.dram_bytes / seconds / device.dram_bytes_per_second}};
}

double dram_bytes_per_clock(const DeviceSpec& device) {
  return device.dram_efficiency * device.dram_bytes_per_second / device.sm_clock_hz;
}

double dram_read_bytes_per_clock(const DeviceSpec& device) {
  return device.dram_read_efficiency * device.dram_bytes_per_second / device.sm_clock_hz;
}

double dram_cycles(double read, double written, const DeviceSpec& device) {
  const double alone = std::max(0.0, read - written);
  return (read + written - alone) / dram_bytes_per_clock(device) + alone / dram_read_bytes_per_clock(device);
}

}  // namespace attest
