#include <vector>

#include "drift_kernels.cuh"

namespace attest::hardware {
namespace {

// An SM's clock: its rate, and how late the CTA started.
struct Clock {
  double rate;  // cycles a ns
  double late_ns;
  Clock(const DriftLog& log, std::uint64_t start_ns) {
    rate = cycles_per_ns(log.before, log.after);
    late_ns = log.before.mean_ns(start_ns) - log.before.mean_cycles(log.began) / rate;
  }
};

std::vector<DriftCta> ctas_of(const std::vector<DriftLog>& logs, std::uint64_t began) {
  double rate = 0;
  for (const DriftLog& log : logs) rate += Clock(log, began).rate / static_cast<double>(logs.size());
  std::vector<DriftCta> ctas;
  for (const DriftLog& log : logs) {
    const Clock clock(log, began);
    const auto common = [&](std::uint32_t cycles) {
      return static_cast<long long>((clock.late_ns + cycles / clock.rate) * rate);
    };
    DriftCta& cta = ctas.emplace_back(log.sm, 1000 * clock.rate);
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
  fill_with_random_pairs(memory_->queries.data(), kQueryBytes / 4);
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
    fill_with_random_pairs(m.tiles.data(), static_cast<std::int64_t>(words));
  }
  struct Launch {
    DeviceArray<DriftLog> logs;
    DeviceArray<unsigned> arrived{1};
    DeviceArray<std::uint64_t> start_ns{1};
  };
  std::vector<Launch> all;
  for (int i = 0; i < launches; ++i) all.emplace_back(DeviceArray<DriftLog>(static_cast<std::size_t>(ctas)));
  for (const Launch& l : all) {
    if (source.cold) fill_with_random_pairs(m.queries.data(), kQueryBytes / 4);  // L2 then holds nothing else
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
