#include <vector>

#include "drift.h"
#include "drift_kernels.cuh"
#include "placement.h"

namespace attest::hardware {
namespace {

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
};

}  // namespace

void measure_drift(std::ostream& rows) {
  const std::vector<SmPlace> places = locate_sms();
  const int sms = static_cast<int>(places.size());
  const std::int64_t words = std::int64_t{sms} * kDriftTiles * 65536 / 4, other_words = std::int64_t{64} << 20;
  const DeviceArray<std::uint32_t> tiles(words), other(other_words);
  fill<<<1024, 256>>>(tiles.data(), words);
  const DeviceArray<float> sink(512), start(std::vector<float>{0.125F, -1e30F, 0.0F, 0.0F});
  const Source sources[] = {
      {"none", 0, 1, false},         {"l2", 1024, 64, false},           {"l2", 8, 12, false},
      {"l2", 1, 2, false},           {"dram", 1024, kDriftTiles, true}, {"dram", 8, kDriftTiles, true},
      {"dram", 1, kDriftTiles, true}};
  for (const bool wgmma : {true, false})
    for (const Source& source : sources)
      for (int repeat = -1; repeat < 2; ++repeat) {  // the first only warms up
        if (source.cold) fill<<<1024, 256>>>(other.data(), other_words);
        const int ctas = wgmma ? sms : 2 * sms;
        const DeviceArray<DriftLog> logs(ctas);
        const DeviceArray<unsigned> arrived(1);
        const DeviceArray<std::uint64_t> start_ns(1);
        const DriftArguments a{
            logs.data(),  arrived.data(),  start_ns.data(), reinterpret_cast<const std::uint8_t*>(tiles.data()),
            source.share, source.distinct, start.data(),    sink.data()};
        (wgmma ? launch_drift_wgmma : launch_drift_mma)(sms, a);
        check(cudaDeviceSynchronize());
        if (repeat < 0) continue;
        const std::vector<DriftLog> all = logs.download();
        const std::uint64_t began = start_ns.download()[0];
        double rate = 0;
        for (const DriftLog& log : all) rate += Clock(log, began).cycles_per_ns / ctas;
        for (int cta = 0; cta < ctas; ++cta) {
          const DriftLog& log = all[static_cast<std::size_t>(cta)];
          const Clock clock(log, began);
          const auto common = [&](std::uint32_t cycles) {
            return static_cast<long long>((clock.late_ns + cycles / clock.cycles_per_ns) * rate);
          };
          for (int t = 0; t < kDriftTiles; ++t)
            rows << (wgmma ? "wgmma" : "mma_sync") << ',' << source.share << ',' << source.name << ',' << repeat << ','
                 << cta << ',' << log.sm << ',' << places[log.sm].gpc << ',' << clock.cycles_per_ns * 1000 << ',' << t
                 << ',' << common(log.asked[t]) << ',' << common(log.ended[t]) << '\n';
        }
      }
}

}  // namespace attest::hardware
