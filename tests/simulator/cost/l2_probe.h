// Where bench/hardware/l2_probe's SMs and its buffer were.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "measured_rows.h"
#include "memory_map.h"

namespace attest {

/// On which side of L2 each SM is, of an H100 and of two H200s (sm_places).
inline const std::vector<int>& sm_sides() {
  static const std::vector<int> sides = [] {
    std::vector<int> all;
    for (const MeasuredRow& row : measured_rows(ATTEST_H200_L2 "/sm_places.csv"))
      all.push_back(std::stoi(row.at("side")));
    return all;
  }();
  return sides;
}

/// Of an H100 it is not known (the hash does not tell its places apart): there its cyclic_read and head_parts are
/// nearest to what is counted, of places every 2 MiB.
inline std::int64_t probe_buffer(const DeviceSpec& device) {
  return device.name == load_device("h100").name ? std::int64_t{736} << 20 : MemoryMap(device, true).buffers();
}

}  // namespace attest
