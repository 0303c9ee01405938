#include "attest/hardware/device.h"
#include "experiments.h"

namespace attest::hardware {
namespace {

// No counters: these rows are the result.
void sm_places(const Bench& bench) {
  for (std::size_t sm = 0; sm < bench.sms.size(); ++sm) bench.row(sm, bench.sms[sm].side, bench.sms[sm].gpc);
}

void page_places(const Bench& bench) {
  for (std::size_t p = 0; p < bench.homes.size(); ++p)
    bench.row(reinterpret_cast<std::uintptr_t>(bench.buffer) + p * kPageBytes, static_cast<int>(bench.homes[p]));
}

void dispatch(const Bench& bench) {
  const auto rows = [&](const char* how, int ctas, int cluster, int smem) {
    for (int launch = 0; launch < 4; ++launch) {
      const std::vector<CtaStart> starts = observe_dispatch(ctas, cluster, smem);
      for (std::size_t cta = 0; cta < starts.size(); ++cta)
        bench.row(how, launch, cta, starts[cta].sm, starts[cta].order, bench.sms[starts[cta].sm].side,
                  bench.sms[starts[cta].sm].gpc);
    }
  };
  const int sms = static_cast<int>(bench.sms.size());
  rows("one_cta_an_sm", sms, 1, kSmemOneCtaAnSm);
  rows("two_ctas_an_sm", 2 * sms, 1, kSmemTwoCtasAnSm);
  rows("clusters_of_2", sms, 2, kSmemOneCtaAnSm);
}

}  // namespace

std::vector<Experiment> placement_experiments() {
  return {{"sm_places", "sm,side,gpc", sm_places},
          {"page_places", "address,home", page_places},
          {"dispatch", "how,launch,cta,sm,order,side,gpc", dispatch}};
}

}  // namespace attest::hardware
