#include "calibrating_l2.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numeric>

#include "attest/hardware/l2.h"
#include "attest/hardware/l2_shares.h"
#include "attest/hardware/placement.h"
#include "attest/problem/error.h"
#include "attest/simulator/calibration.h"
#include "counted_launches.h"

namespace attest::tools {

L2Ways measure_l2_ways(std::int64_t l2_bytes) {
  using hardware::L2Buffer;
  constexpr int shortest = 4, parts = 16;
  const std::int64_t part = l2_bytes / parts;
  const L2Buffer buffer(8 * l2_bytes);
  const auto walks_over = [&](L2Buffer::Pages pages) {
    std::vector<CountedLaunches::Launch> launches;
    for (int n = shortest; n < parts; ++n)
      launches.insert(launches.end(), 2,
                      [&buffer, pages, bytes = n * part](cudaStream_t s) { buffer.read(bytes, pages, s); });
    const std::vector<double> read = CountedLaunches(launches).count("dram__bytes_read.sum");
    std::vector<CyclicWalk> walks;
    for (std::size_t second = 1; second < read.size(); second += 2) {
      const auto n = shortest + static_cast<std::int64_t>(second / 2);
      walks.push_back({static_cast<double>(n) / parts, read[second] / static_cast<double>(n * part)});
    }
    return walks;
  };
  const auto shown = [](const std::vector<CyclicWalk>& walks) {
    std::string text;
    for (const CyclicWalk& walk : walks) text += fmt::format(" {:.3f}", walk.missed);
    return text;
  };
  const std::vector<CyclicWalk> contiguous = walks_over(L2Buffer::Pages::contiguous);
  const std::int64_t partitions = l2_partitions_of(contiguous);
  std::vector<CyclicWalk> scattered = walks_over(L2Buffer::Pages::scattered);
  std::erase_if(scattered, [&](const CyclicWalk& w) { return w.filled * static_cast<double>(partitions) >= 1; });
  const std::int64_t ways = l2_ways_of(scattered, partitions);
  const std::vector<double> written =
      CountedLaunches({[&](cudaStream_t stream) { buffer.read_once(2 * l2_bytes, 3 * l2_bytes, stream); },
                       [&](cudaStream_t stream) { buffer.write_once(0, l2_bytes, stream); },
                       [&](cudaStream_t stream) { buffer.read_once(5 * l2_bytes, 3 * l2_bytes, stream); }})
          .count("dram__bytes_write.sum");
  // what was not written by the second launch, and what was by the third: others' dirty lines make the first too
  // small and the second too large
  const double dirty = (static_cast<double>(l2_bytes) - written.at(1) + written.at(2)) / 2;
  return {
      {static_cast<double>(partitions),
       "of 4 to 15 sixteenths of L2 that all SMs read again DRAM reads" + shown(contiguous)},
      {static_cast<double>(ways), "the same of pages of 4 KiB here and there, as far as they fit:" + shown(scattered)},
      {static_cast<double>(l2_dirty_ways_of(dirty / static_cast<double>(l2_bytes), ways)),
       fmt::format("of as much as L2 holds {:.1f} MiB are written later", dirty / (1 << 20))}};
}

std::vector<double> l2_shares_of_sms() {
  const std::vector<hardware::SmPlace> sms = hardware::locate_sms();
  const std::vector<double> a_clock =
      hardware::l2_shares(hardware::L2Request::local_store, std::vector<bool>(sms.size(), true));
  const double mean = std::accumulate(a_clock.begin(), a_clock.end(), 0.0) / static_cast<double>(sms.size());
  std::map<int, std::vector<double>> of_gpc;
  for (std::size_t sm = 0; sm < sms.size(); ++sm)
    of_gpc[sms[sm].gpc].push_back(std::round(1e3 * a_clock[sm] / mean) / 1e3);
  std::vector<double> all;
  for (const auto& [gpc, shares] : of_gpc) all.insert(all.end(), shares.begin(), shares.end());
  return all;
}

}  // namespace attest::tools
