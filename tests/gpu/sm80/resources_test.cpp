// What the driver says of each kernel of the library, beside the simulator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "attest/gpu/device.h"
#include "attest/problem/error.h"
#include "attest/simulator/occupancy.h"
#include "attest/sm80/sm80_forward.h"

namespace attest {
namespace {

constexpr const char* tile_names[] = {"d64", "d96", "d128", "d192v128", "d192", "d256", "d128_short", "d256_short"};

// The table of docs/results/h200-sm80.md: registers and bytes of local memory a thread, CTAs an SM.
TEST(Sm80Resources, OccupancyIsWhatTheSimulatorPredicts) {
  DeviceSpec device;
  try {
    const DeviceLimits limits = open_device();
    if (limits.name.find("H200") == std::string::npos) GTEST_SKIP() << limits.name << " is not the H200 of the table";
    device = load_device("h200");
  } catch (const EnvironmentError& none) {
    GTEST_SKIP() << none.what();
  }
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16})
    for (const Sm80Tile tile : all_sm80_tiles)
      for (const Sm80Kind kind : {Sm80Kind::fast, Sm80Kind::general}) {
        if (!sm80::has_kernel(tile, kind)) continue;
        const sm80::KernelResources r = sm80::resources_of(dtype, tile, kind);
        const std::string what = fmt::format("{:10} {:7} {}", tile_names[static_cast<int>(tile)],
                                             kind == Sm80Kind::fast ? "fast" : "general", to_string(dtype));
        const Occupancy predicted = occupancy(sm80_plan(tile), r.registers, device);
        fmt::print("{} {:3} registers {:3} B local {} CTAs an SM, by {}\n", what, r.registers, r.local_bytes,
                   r.ctas_per_sm, predicted.limit);
        EXPECT_EQ(r.ctas_per_sm, predicted.ctas_per_sm) << what;
      }
}

}  // namespace
}  // namespace attest
