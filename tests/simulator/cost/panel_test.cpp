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
    {"smem_wavefronts", "long", 14.1, 21.1},
    {"smem_wavefronts", "heads", 11.2, 20.9},
    {"smem_wavefronts", "causal", 11.7, 20.9},
    {"smem_wavefronts", "window", 13.8, 20.5},
    {"smem_wavefronts", "headdim", 9.9, 23.9},
    {"smem_wavefronts", "ragged", 16, 20.6},
    {"smem_wavefronts", "gqa", 15.3, 20.6},
    {"smem_wavefronts", "decode", 0.2, 0.3},
    {"smem_wavefronts", "split", 6.9, 20.2},
    {"smem_wavefronts", "paged", 0.2, 0.2},
    {"smem_wavefronts", "lengths", 20.1, 20.3},
    {"smem_wavefronts", "scores", 0.05, 0.05},
    {"smem_wavefronts", "layout", 18.6, 20.6},
    {"sm_read_bytes", "long", 0.2, 0.2},
    {"sm_read_bytes", "heads", 0.2, 0.4},
    {"sm_read_bytes", "causal", 0.2, 0.5},
    {"sm_read_bytes", "window", 0.8, 2.1},
    {"sm_read_bytes", "headdim", 13.5, 86.8},
    {"sm_read_bytes", "ragged", 0.2, 0.4},
    {"sm_read_bytes", "gqa", 0.2, 0.3},
    {"sm_read_bytes", "decode", 0.05, 0.05},
    {"sm_read_bytes", "split", 0.2, 0.3},
    {"sm_read_bytes", "paged", 0.2, 0.2},
    {"sm_read_bytes", "lengths", 0.2, 0.2},
    {"sm_read_bytes", "scores", 0.2, 0.2},
    {"sm_read_bytes", "layout", 25, 49.9},
    {"sm_write_bytes", "long", 0.05, 0.05},
    {"sm_write_bytes", "heads", 0.05, 0.05},
    {"sm_write_bytes", "causal", 0.05, 0.05},
    {"sm_write_bytes", "window", 0.05, 0.05},
    {"sm_write_bytes", "headdim", 9.8, 38.8},
    {"sm_write_bytes", "ragged", 0.6, 1.2},
    {"sm_write_bytes", "gqa", 0.05, 0.05},
    {"sm_write_bytes", "decode", 4.6, 10.3},
    {"sm_write_bytes", "split", 26.2, 42.1},
    {"sm_write_bytes", "paged", 15.6, 34.7},
    {"sm_write_bytes", "lengths", 8, 15.9},
    {"sm_write_bytes", "scores", 34.7, 34.7},
    {"sm_write_bytes", "layout", 16.2, 32.2},
    {"spill_store_bytes", "long", 0.05, 0.05},
    {"spill_store_bytes", "heads", 0.05, 0.05},
    {"spill_store_bytes", "causal", 0.05, 0.05},
    {"spill_store_bytes", "window", 0.05, 0.05},
    {"spill_store_bytes", "headdim", 104.7, 238.8},
    {"spill_store_bytes", "ragged", 0.05, 0.05},
    {"spill_store_bytes", "gqa", 0.05, 0.05},
    {"spill_store_bytes", "split", 0.05, 0.05},
    {"spill_store_bytes", "paged", 238.8, 238.8},
    {"spill_store_bytes", "lengths", 32.9, 65.6},
    {"spill_store_bytes", "scores", 238.8, 238.8},
    {"spill_store_bytes", "layout", 119.5, 238.8},
    {"l2_read_bytes", "long", 7.1, 13.4},
    {"l2_read_bytes", "heads", 7.9, 17},
    {"l2_read_bytes", "causal", 0.2, 0.5},
    {"l2_read_bytes", "window", 0.9, 2.1},
    {"l2_read_bytes", "headdim", 50.4, 352.8},
    {"l2_read_bytes", "ragged", 3.3, 12},
    {"l2_read_bytes", "gqa", 7.8, 26},
    {"l2_read_bytes", "decode", 0.05, 0.05},
    {"l2_read_bytes", "split", 0.3, 0.5},
    {"l2_read_bytes", "paged", 10.1, 29.9},
    {"l2_read_bytes", "lengths", 1.7, 3.3},
    {"l2_read_bytes", "scores", 3.2, 12.2},
    {"l2_read_bytes", "layout", 18.8, 35.2},
    {"dram_read_bytes", "long", 10.4, 21.4},
    {"dram_read_bytes", "heads", 1.3, 5.2},
    {"dram_read_bytes", "causal", 1.3, 3.5},
    {"dram_read_bytes", "window", 1.1, 1.9},
    {"dram_read_bytes", "headdim", 0.4, 0.7},
    {"dram_read_bytes", "ragged", 0.3, 0.4},
    {"dram_read_bytes", "gqa", 0.3, 0.4},
    {"dram_read_bytes", "decode", 0.2, 0.2},
    {"dram_read_bytes", "split", 0.6, 1.3},
    {"dram_read_bytes", "paged", 0.2, 0.2},
    {"dram_read_bytes", "lengths", 0.5, 0.8},
    {"dram_read_bytes", "scores", 1.6, 2.2},
    {"dram_read_bytes", "layout", 4.5, 7.2},
    {"dram_read_bytes", "unfused", 15.3, 34.8},
    {"dram_write_bytes", "long", 21.9, 34},
    {"dram_write_bytes", "heads", 13, 21.6},
    {"dram_write_bytes", "causal", 13.1, 23},
    {"dram_write_bytes", "window", 16.9, 24.3},
    {"dram_write_bytes", "headdim", 30.1, 105.1},
    {"dram_write_bytes", "ragged", 30.6, 38.2},
    {"dram_write_bytes", "gqa", 6.8, 11.3},
    {"dram_write_bytes", "decode", 23.7, 24},
    {"dram_write_bytes", "split", 57.9, 68.4},
    {"dram_write_bytes", "paged", 27.3, 31.5},
    {"dram_write_bytes", "lengths", 22.1, 23.8},
    {"dram_write_bytes", "scores", 18.7, 19.8},
    {"dram_write_bytes", "layout", 27.4, 28.3},
    {"dram_write_bytes", "unfused", 44.3, 76.2},
    {"registers_per_thread", "long", 0.05, 0.05},
    {"registers_per_thread", "heads", 0.05, 0.05},
    {"registers_per_thread", "causal", 0.2, 0.6},
    {"registers_per_thread", "window", 0.05, 0.05},
    {"registers_per_thread", "headdim", 1.8, 7},
    {"registers_per_thread", "ragged", 0.05, 0.05},
    {"registers_per_thread", "gqa", 0.05, 0.05},
    {"registers_per_thread", "decode", 2.3, 2.3},
    {"registers_per_thread", "split", 1.6, 2.3},
    {"registers_per_thread", "paged", 1.6, 2.3},
    {"registers_per_thread", "lengths", 0.05, 0.05},
    {"registers_per_thread", "scores", 0.05, 0.05},
    {"registers_per_thread", "layout", 0.05, 0.05},
    {"cycles", "long", 0.7, 1},
    {"cycles", "heads", 1.6, 4.8},
    {"cycles", "causal", 5, 16.3},
    {"cycles", "window", 6, 11.9},
    {"cycles", "headdim", 24.3, 98.2},
    {"cycles", "ragged", 9.6, 22.1},
    {"cycles", "gqa", 0.7, 1.1},
    {"cycles", "decode", 9.9, 13.2},
    {"cycles", "split", 15.7, 24.6},
    {"cycles", "paged", 86.1, 96.3},
    {"cycles", "lengths", 0.7, 1.1},
    {"cycles", "scores", 16.6, 24.3},
    {"cycles", "layout", 36.2, 71.5},
    {"time_us", "long", 8.5, 9},
    {"time_us", "heads", 10.9, 16.8},
    {"time_us", "causal", 11.1, 20.1},
    {"time_us", "window", 15.5, 21.2},
    {"time_us", "headdim", 24.6, 98.4},
    {"time_us", "ragged", 13.9, 17.1},
    {"time_us", "gqa", 8.6, 9.2},
    {"time_us", "decode", 14.6, 19.6},
    {"time_us", "split", 23.5, 30.5},
    {"time_us", "paged", 87.3, 96.5},
    {"time_us", "lengths", 10.3, 11},
    {"time_us", "scores", 24.3, 31.3},
    {"time_us", "layout", 42, 74.2},
    {"time_us", "unfused", 90.1, 97.9},
};

TEST(Panel, ErrorsStayWhatIsReached) {
  std::fputs(to_table(compared()).c_str(), stdout);
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
