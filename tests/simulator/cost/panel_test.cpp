// The models against an H200's counters of our own kernels: every call of `attest measure --panel`, cold caches. The
// bounds are what is reached; docs/simulator.md says what is wanted, how far that is, and why.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "attest/problem/file.h"
#include "attest/simulator/comparison.h"

namespace attest {
namespace {

MeasuredFile measured() {
  const std::string file = ATTEST_MEASURED "/h200_panel.csv";
  return measured_from_csv(read_file("panel", file, 8 << 20), file);
}

const std::vector<Comparison>& compared() {
  static const std::vector<Comparison> all = [] {
    const DeviceSpec h200 = load_device("h200");
    std::vector<Comparison> comparisons;
    for (const MeasuredCall& call : measured().calls) comparisons.push_back(compare(call, h200, nullptr));
    return comparisons;
  }();
  return all;
}

TEST(Panel, TheFileHoldsTheCallsThatMeasureMakes) {
  const std::vector<MeasuredCall> panel = measurement_panel(), calls = measured().calls;
  ASSERT_EQ(calls.size(), panel.size());
  for (std::size_t i = 0; i < panel.size(); ++i) {
    EXPECT_EQ(calls[i].mechanism, panel[i].mechanism);
    EXPECT_EQ(calls[i].kernel, panel[i].kernel);
    EXPECT_EQ(calls[i].c, panel[i].c) << command_line(panel[i].c);
  }
}

/// Errors in per cent, of the calls of a mechanism.
struct Reached {
  const char *figure, *mechanism;
  double mean, most;
};

constexpr Reached reached[] = {
};

TEST(Panel, ErrorsStayWhatIsReached) {
  std::fputs(to_table(compared()).c_str(), stdout);
  for (const ComparedFigure& figure : compared().front().figures) {
    const FigureErrors e = errors_of(compared(), figure.name);
    if (e.calls == 0) continue;
    std::printf("worst %-24.*s %6.1f%%  %s %s\n", static_cast<int>(figure.name.size()), figure.name.data(),
                100 * e.most, e.worst->call.kernel.c_str(), command_line(e.worst->call.c).c_str());
  }
  for (const auto& [figure, mechanism, mean, most] : reached) {
    const FigureErrors e = errors_of(compared(), figure, mechanism);
    SCOPED_TRACE(std::string(mechanism) + ", " + figure);
    EXPECT_GT(e.calls, 0);
    EXPECT_LE(100 * e.mean, mean);
    EXPECT_LE(100 * e.most, most) << command_line(e.worst->call.c);
  }
}

}  // namespace
}  // namespace attest
