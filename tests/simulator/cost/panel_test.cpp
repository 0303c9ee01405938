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
    {"smem_wavefronts", "long", 0.1, 0.1},
    {"smem_wavefronts", "heads", 0.1, 0.1},
    {"smem_wavefronts", "causal", 0.1, 0.1},
    {"smem_wavefronts", "window", 0.1, 0.1},
    {"smem_wavefronts", "headdim", 8.7, 23.4},
    {"smem_wavefronts", "ragged", 0.1, 0.1},
    {"smem_wavefronts", "gqa", 0.1, 0.1},
    {"smem_wavefronts", "decode", 165, 170.5},
    {"smem_wavefronts", "split", 110.2, 171.1},
    {"smem_wavefronts", "paged", 0.1, 0.2},
    {"smem_wavefronts", "lengths", 0.1, 0.1},
    {"smem_wavefronts", "scores", 0.1, 0.1},
    {"smem_wavefronts", "layout", 0.1, 0.1},
    {"smem_wavefronts", "forced conflicts", 0.1, 0.1},
    {"smem_wavefronts", "forced spill", 0.1, 0.1},
    {"smem_wavefronts", "synchronous", 0.1, 0.1},
    {"smem_wavefronts", "no skipping", 0.1, 0.1},
    {"sm_read_bytes", "long", 0.1, 0.1},
    {"sm_read_bytes", "heads", 0.1, 0.3},
    {"sm_read_bytes", "causal", 0.2, 0.4},
    {"sm_read_bytes", "window", 0.7, 1.9},
    {"sm_read_bytes", "headdim", 0.6, 5.4},
    {"sm_read_bytes", "ragged", 0.2, 0.3},
    {"sm_read_bytes", "gqa", 0.1, 0.2},
    {"sm_read_bytes", "decode", 0.1, 0.1},
    {"sm_read_bytes", "split", 0.1, 0.2},
    {"sm_read_bytes", "paged", 0.1, 0.1},
    {"sm_read_bytes", "lengths", 0.1, 0.2},
    {"sm_read_bytes", "scores", 0.2, 0.4},
    {"sm_read_bytes", "layout", 11.6, 23.2},
    {"sm_read_bytes", "forced conflicts", 0.3, 0.7},
    {"sm_read_bytes", "forced spill", 65.3, 67.1},
    {"sm_read_bytes", "synchronous", 2.8, 3.4},
    {"sm_read_bytes", "no skipping", 0.2, 0.4},
    {"sm_write_bytes", "long", 0.9, 1.4},
    {"sm_write_bytes", "heads", 0.8, 1.4},
    {"sm_write_bytes", "causal", 0.8, 1.4},
    {"sm_write_bytes", "window", 1.1, 1.4},
    {"sm_write_bytes", "headdim", 6.8, 62.2},
    {"sm_write_bytes", "ragged", 0.7, 1.4},
    {"sm_write_bytes", "gqa", 1.1, 1.4},
    {"sm_write_bytes", "decode", 4.5, 10.3},
    {"sm_write_bytes", "split", 26.2, 41.2},
    {"sm_write_bytes", "paged", 24, 60.1},
    {"sm_write_bytes", "lengths", 9.3, 17.3},
    {"sm_write_bytes", "scores", 70.3, 92.6},
    {"sm_write_bytes", "layout", 38, 74.7},
    {"sm_write_bytes", "forced conflicts", 21.5, 22},
    {"sm_write_bytes", "forced spill", 32.4, 38.2},
    {"sm_write_bytes", "synchronous", 1670.7, 4174.5},
    {"sm_write_bytes", "no skipping", 32.1, 32.1},
    {"spill_store_bytes", "long", 6.3, 6.3},
    {"spill_store_bytes", "heads", 6.3, 6.3},
    {"spill_store_bytes", "causal", 6.3, 6.3},
    {"spill_store_bytes", "window", 6.3, 6.3},
    {"spill_store_bytes", "headdim", 42.9, 105.1},
    {"spill_store_bytes", "ragged", 6.3, 6.3},
    {"spill_store_bytes", "gqa", 6.3, 6.3},
    {"spill_store_bytes", "split", 6.3, 6.3},
    {"spill_store_bytes", "paged", 83, 83},
    {"spill_store_bytes", "lengths", 40, 73.7},
    {"spill_store_bytes", "scores", 88.3, 100.3},
    {"spill_store_bytes", "layout", 49.4, 92.4},
    {"spill_store_bytes", "forced conflicts", 79.6, 82.7},
    {"spill_store_bytes", "forced spill", 33.1, 38.3},
    {"spill_store_bytes", "synchronous", 10023.6, 25046.6},
    {"spill_store_bytes", "no skipping", 154.5, 154.5},
    {"l2_read_bytes", "long", 6.4, 10.6},
    {"l2_read_bytes", "heads", 6.5, 13},
    {"l2_read_bytes", "causal", 0.2, 0.4},
    {"l2_read_bytes", "window", 0.8, 2},
    {"l2_read_bytes", "headdim", 28.1, 147},
    {"l2_read_bytes", "ragged", 1.9, 4.2},
    {"l2_read_bytes", "gqa", 6.3, 20.1},
    {"l2_read_bytes", "decode", 0.1, 0.1},
    {"l2_read_bytes", "split", 1, 2.9},
    {"l2_read_bytes", "paged", 1, 2.7},
    {"l2_read_bytes", "lengths", 1.4, 2.6},
    {"l2_read_bytes", "scores", 1.5, 5.3},
    {"l2_read_bytes", "layout", 4.7, 7.7},
    {"l2_read_bytes", "forced conflicts", 1, 4},
    {"l2_read_bytes", "forced spill", 68, 72.6},
    {"l2_read_bytes", "synchronous", 14.2, 42.9},
    {"l2_read_bytes", "no skipping", 5.3, 12.8},
    {"dram_read_bytes", "long", 12.8, 23.1},
    {"dram_read_bytes", "heads", 1, 4.4},
    {"dram_read_bytes", "causal", 1, 2.8},
    {"dram_read_bytes", "window", 1.1, 1.7},
    {"dram_read_bytes", "headdim", 0.3, 0.7},
    {"dram_read_bytes", "ragged", 0.2, 0.3},
    {"dram_read_bytes", "gqa", 0.2, 0.3},
    {"dram_read_bytes", "decode", 0.1, 0.1},
    {"dram_read_bytes", "split", 0.4, 1},
    {"dram_read_bytes", "paged", 0.2, 0.5},
    {"dram_read_bytes", "lengths", 1.1, 1.8},
    {"dram_read_bytes", "scores", 3.3, 5.9},
    {"dram_read_bytes", "layout", 4.5, 7.6},
    {"dram_read_bytes", "forced conflicts", 1.7, 4.8},
    {"dram_read_bytes", "forced spill", 54.7, 140.7},
    {"dram_read_bytes", "synchronous", 2.4, 4.4},
    {"dram_read_bytes", "no skipping", 2.3, 5.1},
    {"dram_read_bytes", "unfused", 13.8, 34.7},
    {"dram_write_bytes", "long", 18.1, 26.2},
    {"dram_write_bytes", "heads", 16, 30.8},
    {"dram_write_bytes", "causal", 12.7, 21.8},
    {"dram_write_bytes", "window", 16.3, 23.3},
    {"dram_write_bytes", "headdim", 34.2, 105.1},
    {"dram_write_bytes", "ragged", 30, 37.5},
    {"dram_write_bytes", "gqa", 6.5, 10.7},
    {"dram_write_bytes", "decode", 25.6, 27.8},
    {"dram_write_bytes", "split", 56.6, 65.8},
    {"dram_write_bytes", "paged", 29.6, 31.7},
    {"dram_write_bytes", "lengths", 21.9, 23},
    {"dram_write_bytes", "scores", 27.2, 29.5},
    {"dram_write_bytes", "layout", 30.4, 33.6},
    {"dram_write_bytes", "forced conflicts", 23.9, 25.7},
    {"dram_write_bytes", "forced spill", 370, 448.3},
    {"dram_write_bytes", "synchronous", 21.5, 25.5},
    {"dram_write_bytes", "no skipping", 19.1, 21.8},
    {"dram_write_bytes", "unfused", 44, 75.4},
    {"registers_per_thread", "long", 0.1, 0.1},
    {"registers_per_thread", "heads", 0.1, 0.1},
    {"registers_per_thread", "causal", 0.1, 0.1},
    {"registers_per_thread", "window", 0.1, 0.1},
    {"registers_per_thread", "headdim", 0.1, 0.1},
    {"registers_per_thread", "ragged", 0.1, 0.1},
    {"registers_per_thread", "gqa", 0.1, 0.1},
    {"registers_per_thread", "decode", 1.8, 1.8},
    {"registers_per_thread", "split", 1.3, 1.8},
    {"registers_per_thread", "paged", 1.3, 1.8},
    {"registers_per_thread", "lengths", 0.1, 0.1},
    {"registers_per_thread", "scores", 0.1, 0.1},
    {"registers_per_thread", "layout", 0.1, 0.1},
    {"registers_per_thread", "forced conflicts", 0.1, 0.1},
    {"registers_per_thread", "forced spill", 0.1, 0.1},
    {"registers_per_thread", "synchronous", 0.1, 0.1},
    {"registers_per_thread", "no skipping", 0.1, 0.1},
    {"cycles", "long", 1.3, 1.7},
    {"cycles", "heads", 1.8, 3.7},
    {"cycles", "causal", 4.5, 12.3},
    {"cycles", "window", 5.5, 12},
    {"cycles", "headdim", 23.2, 98.3},
    {"cycles", "ragged", 8.7, 20.6},
    {"cycles", "gqa", 1.3, 2.3},
    {"cycles", "decode", 9.8, 13.9},
    {"cycles", "split", 16.9, 26.7},
    {"cycles", "paged", 86.8, 96.6},
    {"cycles", "lengths", 0.7, 1},
    {"cycles", "scores", 43.4, 63.5},
    {"cycles", "layout", 37.8, 75.3},
    {"cycles", "forced conflicts", 1.6, 2.6},
    {"cycles", "forced spill", 30, 39.3},
    {"cycles", "synchronous", 21.2, 27.1},
    {"cycles", "no skipping", 3, 6.7},
    {"time_us", "long", 8.3, 9.1},
    {"time_us", "heads", 11, 15.7},
    {"time_us", "causal", 10, 20.5},
    {"time_us", "window", 15.2, 21.7},
    {"time_us", "headdim", 24, 98.5},
    {"time_us", "ragged", 13.1, 17.4},
    {"time_us", "gqa", 8.4, 9.8},
    {"time_us", "decode", 14.9, 20.2},
    {"time_us", "split", 24.9, 31.8},
    {"time_us", "paged", 87.8, 96.7},
    {"time_us", "lengths", 9.8, 10.3},
    {"time_us", "scores", 48.4, 66.3},
    {"time_us", "layout", 43.6, 77.8},
    {"time_us", "forced conflicts", 7.2, 8.2},
    {"time_us", "forced spill", 36.7, 44.9},
    {"time_us", "synchronous", 28.8, 34.8},
    {"time_us", "no skipping", 10.6, 17.7},
    {"time_us", "unfused", 90.1, 97.8},
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
