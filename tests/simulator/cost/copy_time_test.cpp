// What copies by gpu/sm80's function take, against its machine code: bench/hardware/copy_paths.py.
#include "copy_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "attest/plan/catalog.h"
#include "attest/plan/sm80_tiles.h"
#include "attest/simulator/report.h"
#include "attest/simulator/step_time.h"
#include "in_step.h"
#include "measured_rows.h"

namespace attest {
namespace {

/// By kernel and part.
std::map<std::string, std::map<std::string, CopyTime>> parts() {
  std::map<std::string, std::map<std::string, CopyTime>> all;
  for (const MeasuredRow& row : measured_rows(ATTEST_MEASURED "/copy_paths.csv")) {
    auto& of_kernel = all[row.at("kernel")];
    const double instructions = std::stod(row.at("instructions"));
    of_kernel[row.at("part")] = {instructions, std::stod(row.at("cycles"))};
    of_kernel[row.at("part") + ", missing"] = {instructions, std::stod(row.at("missing"))};
  }
  return all;
}

KernelPlan copying(int bytes, int slots = 2) {
  KernelPlan plan = with_words_of(sm80_plan(Sm80Tile::d128),
                                  Sm80Kind::general);  // 64 rows of 128 columns by 128 threads, 8 rows a pass
  plan.stages = slots;
  plan.copy_bytes_q = plan.copy_bytes_k = plan.copy_bytes_v = bytes;
  return plan;
}

TEST(CopyTime, IsTheMachineCodeOfTheFunction) {
  const DeviceSpec device = load_device("h200");
  const auto kernels = parts();
  ASSERT_EQ(kernels.size(), 10u);  // five tiles of the general kind, fp16 and bf16
  for (const auto& [kernel, part] : kernels) {
    // `parted` panels that lanes leave in part; `arrives`: cycles of loads beyond L1
    const auto expect = [&](CopyTime time, const std::string& call, const std::string& granule, int panels, int absent,
                            int parted = 0, double arrives = 0) {
      SCOPED_TRACE(kernel + ": " + granule);
      const auto sum = [&](double CopyTime::*x) {
        const double row = panels * part.at(granule).*x;
        const double past = absent == 0 ? 0 : absent * part.at(granule + ", past the end").*x;
        const double in_parts = parted == 0 ? 0 : parted * part.at(granule + ", parted").*x;
        return part.at(call).*x + 8 * (part.at("pass").*x + row + past + in_parts);
      };
      // the model has one call for kernels whose calls differ
      EXPECT_NEAR(time.instructions / sum(&CopyTime::instructions), 1, 0.05);
      EXPECT_NEAR((time.cycles - arrives) / sum(&CopyTime::cycles), 1, 0.035);
    };
    const bool several_warps_and_slots =
        kernel.find("Sm80TileE0") != std::string::npos || kernel.find("Sm80TileE2") != std::string::npos;
    const int slots = several_warps_and_slots ? 2 : 1;
    KernelPlan narrow = copying(8, slots);
    expect(copy_time(narrow, device, Operand::k, false), "call", "8 bytes", 2, 0);
    narrow.headdim_v = 60;
    expect(copy_time(narrow, device, Operand::v, false), "call", "8 bytes", 0, 1, 1);
    expect(copy_time(copying(4, slots), device, Operand::k, false), "call", "4 bytes", 4, 0);
    narrow = copying(2, slots);
    narrow.headdim = 65;
    // 130 bytes in panels of 32: five granules of a row, which wait for its sectors, the last of them one lane's
    const double waits = device.l2_latency_cycles - cycles_from_l1(device);
    expect(copy_time(narrow, device, Operand::k, false), "call", "2 bytes", 4, 3, 1, 8 * 130 / 32.0 * waits);
    EXPECT_EQ(copy_time(narrow, device, Operand::k, false).loads, 8 * 130 / 32.0);
    // 998 cycles for one kernel of its kind, 746 for another
    const auto arguments = [&](const std::string& call) {
      return part.at(call + ", missing").cycles - part.at(call).cycles;
    };
    const double missing = copy_time(copying(8, slots), device, Operand::k, false, 1).cycles -
                           copy_time(copying(8, slots), device, Operand::k, false).cycles;
    EXPECT_NEAR(missing, arguments("call"), 130);
    EXPECT_NEAR(missing, arguments("call, pages"), 130);
    expect(copy_time(copying(16, slots), device, Operand::v, true), "call, pages", "16 bytes of a page", 1, 0);
    KernelPlan packed = copying(16, slots);
    packed.packed_heads = 4;
    packed.tile_m = 64;
    expect(copy_time(packed, device, Operand::q, false), "call, Q", "16 bytes of packed heads", 1, 0);
  }
}

// Of loops within 32 KB of code: what control words, jumps and code that is not near take by the script that has the
// function's paths, beside what one warp of a scheduler was measured to take. Beyond, lines leave the cache behind it.
TEST(CopyTime, CodeIsFetchedAsMeasured) {
  std::map<std::string, double> measured;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/fetch.csv"))
    if (row.at("warps_a_scheduler") == "1")
      measured["fetch " + row.at("instructions") + " " + row.at("skips")] =
          std::stod(row.at("instructions")) * std::stod(row.at("cycles"));
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/jumps.csv"))
    for (const char* jump : {"straight", "uniform", "reconverging"})
      if (row.at("warps_a_scheduler") == "1")
        measured["jumps " + row.at("block") + " " + row.at("skipped") + " " + row.at("blocks") + " " + jump] =
            std::stod(row.at(jump));
  int within = 0;
  double off = 0;
  for (const MeasuredRow& row : measured_rows(ATTEST_H200_SM "/fetch_paths.csv")) {
    std::string loop = row.at("benchmark");
    for (const char* part : {"block", "skipped", "blocks", "jump"})
      if (!row.at(part).empty()) loop += " " + row.at(part);
    const double lines = std::stod(row.at("lines")), ratio = std::stod(row.at("cycles")) / measured.at(loop);
    std::printf("%-32s %5.0f KB %9.0f cycles, %.3f\n", loop.c_str(), lines / 8, measured.at(loop), ratio);
    if (lines > 256) {
      EXPECT_LT(ratio, 0.9) << loop;
      continue;
    }
    ++within;
    off += std::abs(ratio - 1);
    // what waits in the 33 KB over which 1024 instructions lie is in part beyond
    EXPECT_NEAR(ratio, 1, loop == "fetch 1024 1" ? 0.15 : 0.09) << loop;
  }
  std::printf("%d loops within 32 KB, off by %.3f\n", within, off / within);
  EXPECT_EQ(within, 44);
  EXPECT_LE(off / within, 0.018);
}

Case paged() {
  Case c;
  c.problem = {2, 4, 4, 1024, 1024, 128, 128, Dtype::bf16, {}};
  c.layout.page_size = 64;
  return c;
}

TEST(CopyTime, PlainAndBulkCopiesTakeNone) {
  const DeviceSpec device = load_device("h200");
  EXPECT_EQ(copy_time(copying(16), device, Operand::k, false).cycles, 0);
  EXPECT_EQ(copy_time(copying(16), device, Operand::q, true).cycles, 0);  // queries lie in no pages
  KernelPlan bulk = copying(8);
  bulk.copy_kind = CopyKind::tma;
  EXPECT_EQ(copy_time(bulk, device, Operand::k, false).cycles, 0);
}

TEST(CopyTime, CtasKeepInStepWhereTheyCopyByTheFunctionAndWaitForNoGranule) {
  const DeviceSpec device = load_device("h200");
  EXPECT_TRUE(keeps_in_step(copying(8), device, false));
  EXPECT_FALSE(keeps_in_step(copying(2), device, false));  // through registers
  EXPECT_FALSE(keeps_in_step(copying(16), device, false));
  EXPECT_TRUE(keeps_in_step(copying(16), device, true));
}

SimulationReport predicted(const char* plan, const Case& c, const char* device_name) {
  const DeviceSpec device = load_device(device_name);
  return simulate(c, plan_named(plan, c, device), device, plan);
}

bool hangs_on_copy_time(const char* plan, const Case& c, const char* device_name) {
  const SimulationReport r = predicted(plan, c, device_name);
  return simulate(c, r.plan, *device_scaled(r.device, "copy_time_scale", 2), plan).cycles != r.cycles;
}

// The function is gpu/sm80's. What other kernels take for pages is not known.
TEST(CopyTime, OtherKernelsHaveNoSuchFunction) {
  Case together = paged();
  together.layout.page_size = 0;
  for (const char* device : {"a100", "h200"}) {
    SCOPED_TRACE(device);
    const SimulationReport fa2 = predicted("fa2", paged(), device);
    // whose kernel for pages is not the one that was read
    EXPECT_NEAR(fa2.cycles / predicted("fa2", together, device).cycles, 1, 0.03);
    EXPECT_FALSE(hangs_on_copy_time("fa2", paged(), device));
    EXPECT_GT(predicted("attest", paged(), device).cycles / predicted("attest", together, device).cycles, 1.5);
    EXPECT_FALSE(hangs_on_copy_time("attest", together, device));
    EXPECT_TRUE(hangs_on_copy_time("attest", paged(), device));
  }
}

TEST(CopyTime, IsAnEstimateWhereTheFunctionIsCompiledForAnotherArchitecture) {
  for (const std::string& name : device_names()) {
    const DeviceSpec device = load_device(name);
    if (device.kind != DeviceKind::gpu) continue;
    for (const char* field : {"copy_time_scale", "kernel_code_scale"})
      EXPECT_EQ(device.origin(field).estimated, device.compute_capability != 90) << name;
  }
}

}  // namespace
}  // namespace attest
