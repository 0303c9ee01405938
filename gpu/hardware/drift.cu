#include <vector>

#include "drift_kernels.cuh"

namespace attest::hardware {
namespace {

// What L2 held is not there afterwards.
__global__ void fill(std::uint32_t* words, std::int64_t count) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    words[i] = random_pair(static_cast<std::uint32_t>(i));
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

std::vector<DriftCta> ctas_of(const std::vector<DriftLog>& logs, std::uint64_t began) {
  double rate = 0;
  for (const DriftLog& log : logs) rate += Clock(log, began).cycles_per_ns / static_cast<double>(logs.size());
  std::vector<DriftCta> ctas;
  for (const DriftLog& log : logs) {
    const Clock clock(log, began);
    const auto common = [&](std::uint32_t cycles) {
      return static_cast<long long>((clock.late_ns + cycles / clock.cycles_per_ns) * rate);
    };
    DriftCta& cta = ctas.emplace_back(log.sm, 1000 * clock.cycles_per_ns);
    for (int t = 0; t < drift_tiles; ++t)
      cta.tiles.emplace_back(common(log.asked[t]), common(log.asked_v[t]), common(log.ended[t]));
  }
  return ctas;
}

}  // namespace

std::vector<DriftKernel> drift_kernels() {
  std::vector<DriftKernel> kernels = drift_kernels_wgmma();
  for (const DriftKernel& kernel : drift_kernels_mma()) kernels.push_back(kernel);
  return kernels;
}

struct DriftBench::Memory {
  DeviceArray<std::uint32_t> tiles{0}, queries{kQueryBytes / 4};
  DeviceArray<std::uint8_t> outputs{kQueryBytes};
  DeviceArray<float> sink{512}, start{std::vector<float>{0.125F, -1e30F, 0.0F, 0.0F}};
};

DriftBench::DriftBench() : memory_(std::make_unique<Memory>()) {
  fill<<<1024, 256>>>(memory_->queries.data(), kQueryBytes / 4);
}
DriftBench::~DriftBench() = default;

std::vector<std::vector<DriftCta>> DriftBench::measure(const DriftKernel& kernel, const DriftSource& source,
                                                       int launches) {
  const int sms = multiprocessors(), ctas = sms * kernel.ctas_an_sm;
  const std::int64_t heads = source.share == 0 ? 0 : (ctas - 1) / source.share + 1;
  const auto words = static_cast<std::size_t>(heads * source.distinct * 2 * kernel.tile_bytes / 4);
  Memory& m = *memory_;
  if (words > m.tiles.size()) {
    m.tiles = DeviceArray<std::uint32_t>(words);
    fill<<<1024, 256>>>(m.tiles.data(), static_cast<std::int64_t>(words));
  }
  struct Launch {
    DeviceArray<DriftLog> logs;
    DeviceArray<unsigned> arrived{1};
    DeviceArray<std::uint64_t> start_ns{1};
  };
  std::vector<Launch> all;
  for (int i = 0; i < launches; ++i) all.emplace_back(DeviceArray<DriftLog>(static_cast<std::size_t>(ctas)));
  for (const Launch& l : all) {
    if (source.cold) fill<<<1024, 256>>>(m.queries.data(), kQueryBytes / 4);
    kernel.launch(sms, {l.logs.data(), l.arrived.data(), l.start_ns.data(),
                        reinterpret_cast<const std::uint8_t*>(m.tiles.data()), source.share, source.distinct,
                        source.keys_a_query, reinterpret_cast<const std::uint8_t*>(m.queries.data()), m.outputs.data(),
                        m.start.data(), m.sink.data()});
  }
  check(cudaDeviceSynchronize());
  std::vector<std::vector<DriftCta>> of_launches;
  for (const Launch& l : all) of_launches.push_back(ctas_of(l.logs.download(), l.start_ns.download()[0]));
  return of_launches;
}

}  // namespace attest::hardware
