#include "residents.h"

#include <algorithm>
#include <cmath>

namespace attest {

Residents::Residents(const TileWalkOptions& options, std::int64_t sms, int slots_a_round, int cluster)
    : options_(options), slots_a_round_(slots_a_round), cluster_(cluster), ctas_(static_cast<std::size_t>(sms)) {}

void Residents::clear() {
  std::fill(ctas_.begin(), ctas_.end(), 0);
  l2_busy_ = 0;
}

double Residents::l2_busy(int ctas) const {
  const std::size_t known = options_.l2_busy.size();
  return ctas == 0 || known == 0 ? 0 : options_.l2_busy[std::min(static_cast<std::size_t>(ctas), known) - 1];
}

void Residents::change(int sm, int by) {
  int& ctas = ctas_[static_cast<std::size_t>(sm)];
  l2_busy_ += l2_busy(ctas + by) - l2_busy(ctas);
  ctas += by;
}

double Residents::pace(int sm) const {
  if (options_.paces.empty()) return 1;
  const std::size_t sharing = std::min(static_cast<std::size_t>(on(sm)), options_.paces.size());
  const std::vector<std::vector<double>>& levels = options_.paces[sharing - 1];
  if (levels.empty()) return 1;
  const double most = options_.l2_busy.empty() ? 0 : slots_a_round_ * options_.l2_busy.back();
  const double part = most == 0 ? 1 : std::clamp(l2_busy_ / most, 0.0, 1.0);
  const auto level = std::lround(part * static_cast<double>(levels.size() - 1));
  const std::vector<double>& of_sms = levels[static_cast<std::size_t>(level)];
  const auto first = of_sms.begin() + sm;
  return *std::min_element(first, first + std::min<std::ptrdiff_t>(cluster_, of_sms.end() - first));
}

}  // namespace attest
