#include "calibrating_walks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "attest/hardware/drift.h"
#include "attest/hardware/placement.h"

namespace attest::tools {
namespace {

using hardware::DriftCta;

std::vector<double> clocks_of_gpcs(const std::vector<DriftCta>& launch, const std::vector<hardware::SmPlace>& sms) {
  std::vector<hardware::OfSm> clocks;
  for (const DriftCta& cta : launch) clocks.push_back({cta.sm, cta.mhz});
  return hardware::means_of_gpcs(clocks, sms);
}

/// CTAs of one GPC are alike, of two that share an SM those that are the first there.
double step_deviation(const std::vector<DriftCta>& launch, const std::vector<hardware::SmPlace>& sms) {
  std::map<unsigned, int> on_sm;
  std::vector<WalkedTiles> ctas;
  for (const DriftCta& cta : launch) {
    WalkedTiles& walked = ctas.emplace_back(2 * sms.at(cta.sm).gpc + on_sm[cta.sm]++);
    for (const hardware::DriftTile& tile : cta.tiles) walked.asked.push_back(static_cast<double>(tile.asked));
  }
  return step_deviation_of(ctas);
}

double root_mean_square(const std::vector<double>& all) {
  double squares = 0;
  for (const double x : all) squares += x * x / static_cast<double>(all.size());
  return std::sqrt(squares);
}

}  // namespace

Walks measure_walks() {
  constexpr int launches = 10;
  // the second as key tiles come to attention kernels: eight CTAs read a head, which L2 has
  constexpr hardware::DriftSource without_copies{0, 1}, from_l2{8, 12};
  const std::vector<hardware::SmPlace> sms = hardware::locate_sms();
  hardware::DriftBench bench;
  std::map<bool, std::vector<std::vector<double>>> clocks;  // of wgmma or not
  std::vector<double> two, three, shared, alone;
  for (const hardware::DriftKernel& kernel : hardware::drift_kernels()) {
    const bool wgmma = std::string_view(kernel.matrix) == "wgmma";
    if (wgmma && !kernel.turns) continue;  // warpgroups of attention kernels take turns
    for (const auto& launch : bench.measure(kernel, without_copies, launches))
      clocks[wgmma].push_back(clocks_of_gpcs(launch, sms));
    for (const auto& launch : bench.measure(kernel, from_l2, launches)) {
      clocks[wgmma].push_back(clocks_of_gpcs(launch, sms));
      std::vector<double>& deviations =
          !wgmma ? (kernel.ctas_an_sm == 2 ? shared : alone) : (kernel.warpgroups == 3 ? three : two);
      deviations.push_back(step_deviation(launch, sms));
    }
  }
  return {gpc_clocks_of(clocks[true]), gpc_clocks_of(clocks[false]), root_mean_square(two),
          root_mean_square(three),     root_mean_square(shared),     root_mean_square(alone)};
}

}  // namespace attest::tools
