// combine(), against its machine code: bench/hardware/combine_path.py.
#include "combine_time.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "csv.h"

namespace attest {
namespace {

struct Part {
  double cycles = 0, waits = 0;
};

std::map<std::string, Part> parts() {
  std::map<std::string, Part> all;
  std::ifstream in(ATTEST_MEASURED "/combine_paths.csv");
  for (std::string line; std::getline(in, line);) {
    if (line.find("combine_kernel") == std::string::npos) continue;
    const std::vector<std::string> cells = csv_cells(line);
    all[cells[1]] = {std::stod(cells[3]), std::stod(cells[4])};
  }
  return all;
}

TEST(CombineTime, IsWhatItsWarpsExecuteAndWaitFor) {
  std::map<std::string, Part> code = parts();
  ASSERT_EQ(code.size(), 3u);
  const DeviceSpec device = load_device("h200");
  const auto cycles = [&](int splits, double from_dram = 0, double rows = 4) {
    return combine_cycles({rows, splits, 0, from_dram}, device);
  };
  constexpr double hit = 29;
  const double l2 = device.l2_latency_cycles - hit, turn = code["turn"].cycles + code["turn"].waits * l2;
  EXPECT_NEAR(cycles(8) - cycles(4), turn, 1);
  EXPECT_NEAR(cycles(5) - cycles(4), turn, 1);
  EXPECT_NEAR(cycles(33) - cycles(32), turn + code["weights"].cycles, 1);
  EXPECT_NEAR(cycles(4) - device.kernel_launch_cycles - device.cta_launch_cycles,
              code["row"].cycles + code["weights"].cycles + turn + l2, 2);  // of LSE's loads the first alone is far
  EXPECT_NEAR(cycles(4, 1) - cycles(4), code["turn"].waits * (device.dram_latency_cycles - device.l2_latency_cycles),
              1);
  const double fit = 12 * 4 * 132;
  EXPECT_EQ(cycles(4, 0, fit), cycles(4));
  EXPECT_DOUBLE_EQ(cycles(4, 0, fit + 1) - cycles(4), cycles(4) - device.kernel_launch_cycles);
  EXPECT_EQ(combine_cycles({}, device), 0);
  const double bytes = 1e9;  // more than latencies hide
  EXPECT_NEAR(combine_cycles({4, 4, bytes, 0}, device) - device.kernel_launch_cycles,
              bytes / device.l2_bytes_per_second * device.sm_clock_hz, 1);
}

}  // namespace
}  // namespace attest
