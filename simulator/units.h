// Figures as a person reads them: three digits and a unit.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <string>

namespace attest::units {

inline std::string scaled(double x, double step, std::initializer_list<const char*> units) {
  auto unit = units.begin();
  while (std::abs(x) >= step && unit + 1 != units.end()) x /= step, ++unit;
  const bool whole = unit == units.begin() && x == std::floor(x);  // a count, not a fraction of a unit
  return fmt::format("{:.{}f} {}", x, whole || x >= 100 ? 0 : x >= 10 ? 1 : 2, *unit);
}
inline std::string bytes(double x) { return scaled(x, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"}); }
inline std::string time(double us) { return scaled(us, 1000, {"us", "ms", "s"}); }
inline std::string flops(double x) { return scaled(x, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"}); }
inline std::string percent(double x) { return fmt::format("{:.1f}%", 100 * x); }

}  // namespace attest::units
