#include <algorithm>
#include <vector>

#include "attest/hardware/placement.h"
#include "drift.h"
#include "drift_kernels.cuh"

namespace attest::hardware {
namespace {

constexpr int kDriftRepeats = 2;

// Fills with numbers near 1; and what L2 held is not there afterwards.
__global__ void fill(std::uint32_t* words, std::int64_t count) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    words[i] = 0x3c003c00 + (static_cast<std::uint32_t>(i) * 2654435761u >> 8 & 0x00ff00ff);
}

double mean_difference(const long long (&clock)[kClockReadings], long long from) {
  double sum = 0;
  for (const long long x : clock) sum += static_cast<double>(x - from);
  return sum / kClockReadings;
}
double mean_difference(const std::uint64_t (&ns)[kClockReadings], std::uint64_t from) {
  double sum = 0;
  for (const std::uint64_t x : ns) sum += static_cast<double>(x) - static_cast<double>(from);
  return sum / kClockReadings;
}

// An SM's clock as the global timer has it: its rate, and how late the CTA started.
struct Clock {
  double cycles_per_ns, late_ns;
  Clock(const DriftLog& log, std::uint64_t start_ns) {
    const double before = mean_difference(log.clock[0], log.began), before_ns = mean_difference(log.ns[0], start_ns);
    const double after = mean_difference(log.clock[1], log.began), after_ns = mean_difference(log.ns[1], start_ns);
    cycles_per_ns = (after - before) / (after_ns - before_ns);
    late_ns = before_ns - before / cycles_per_ns;
  }
};

struct Source {
  const char* name;
  int share, distinct;
  bool cold;
  int keys_a_query;
};

void write_rows(std::ostream& rows, const DriftKernel& kernel, const Source& source, int repeat,
                const std::vector<DriftLog>& logs, std::uint64_t began, const std::vector<SmPlace>& places) {
  double rate = 0;
  for (const DriftLog& log : logs) rate += Clock(log, began).cycles_per_ns / static_cast<double>(logs.size());
  for (std::size_t cta = 0; cta < logs.size(); ++cta) {
    const DriftLog& log = logs[cta];
    const Clock clock(log, began);
    const auto common = [&](std::uint32_t cycles) {
      return static_cast<long long>((clock.late_ns + cycles / clock.cycles_per_ns) * rate);
    };
    for (int t = 0; t < kDriftTiles; ++t)
      rows << kernel.matrix << ',' << kernel.tile_n << ',' << kernel.headdim << ',' << kernel.warpgroups << ','
           << kernel.turns << ',' << source.share << ',' << source.name << ',' << source.keys_a_query << ',' << repeat
           << ',' << cta << ',' << log.sm << ',' << places[log.sm].gpc << ',' << clock.cycles_per_ns * 1000 << ',' << t
           << ',' << common(log.asked[t]) << ',' << common(log.asked_v[t]) << ',' << common(log.ended[t]) << '\n';
  }
}

}  // namespace

void measure_drift(std::ostream& rows) {
  const std::vector<SmPlace> places = locate_sms();
  const int sms = static_cast<int>(places.size());
  const Source sources[] = {
      {"none", 0, 1, false, kDriftTiles},
      {"l2", 1024, 64, false, kDriftTiles},
      {"l2", 8, 12, false, kDriftTiles},
      {"l2", 1, 2, false, kDriftTiles},
      {"dram", 1024, kDriftTiles, true, kDriftTiles},
      {"dram", 8, kDriftTiles, true, kDriftTiles},
      {"dram", 22, kDriftTiles, true, kDriftTiles},
      {"none", 0, 1, false, 20},
      {"dram", 22, kDriftTiles, true, 20},
  };
  std::vector<DriftKernel> kernels = drift_kernels_wgmma();
  for (const DriftKernel& kernel : drift_kernels_mma()) kernels.push_back(kernel);
  std::int64_t bytes = 0;
  for (const DriftKernel& kernel : kernels)
    for (const Source& s : sources)
      if (s.share > 0)
        bytes = std::max<std::int64_t>(
            bytes, std::int64_t{(sms * kernel.ctas_an_sm - 1) / s.share + 1} * s.distinct * 2 * kernel.tile_bytes);
  const DeviceArray<std::uint32_t> tiles(bytes / 4), queries(kQueryBytes / 4);
  const DeviceArray<std::uint8_t> outputs(kQueryBytes);
  const DeviceArray<float> sink(512), start(std::vector<float>{0.125F, -1e30F, 0.0F, 0.0F});
  fill<<<1024, 256>>>(tiles.data(), bytes / 4);
  for (const DriftKernel& kernel : kernels)
    for (const Source& source : sources) {
      if (kernel.query_bytes == 0 && source.keys_a_query < kDriftTiles) continue;
      for (int repeat = 0; repeat < kDriftRepeats; ++repeat) {
        if (source.cold) fill<<<1024, 256>>>(queries.data(), kQueryBytes / 4);
        const DeviceArray<DriftLog> logs(sms * kernel.ctas_an_sm);
        const DeviceArray<unsigned> arrived(1);
        const DeviceArray<std::uint64_t> start_ns(1);
        kernel.launch(
            sms, {logs.data(), arrived.data(), start_ns.data(), reinterpret_cast<const std::uint8_t*>(tiles.data()),
                  source.share, source.distinct, source.keys_a_query,
                  reinterpret_cast<const std::uint8_t*>(queries.data()), outputs.data(), start.data(), sink.data()});
        check(cudaDeviceSynchronize());
        write_rows(rows, kernel, source, repeat, logs.download(), start_ns.download()[0], places);
      }
    }
}

}  // namespace attest::hardware
