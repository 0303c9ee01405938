// The models against an H100's counters of our own kernels. They were made on H200s, and the values of the device's
// file come from micro-benchmarks of that H100; docs/results/h100.md says what was chosen with these rows in view.
#include <gtest/gtest.h>

#include "panel_goals.h"

namespace attest {
namespace {

constexpr const char *narrow = "which of an SM's CTAs walk one head, for L1 to serve the second one",
                     *drift = "how far CTAs drift that wait for copies",
                     *lost = "calls under a mask: L2 lets go of more than the model has, not known why";

constexpr Beyond beyond[] = {
    {"window", "sm_read_bytes", 0.31, 1.1, "as on an H200: 64 heads"},
    {"headdim", "sm_read_bytes", 0.7, 5.7, narrow},
    {"scores", "sm_read_bytes", 0.08, 0.26, "as on an H200: ALiBi"},
    {"layout", "sm_read_bytes", 1.3, 2.6, narrow},
    {"forced spill", "sm_read_bytes", 0.98, 2.4, "as on an H200: which lines L1 lets go of"},
    {"synchronous", "sm_read_bytes", 0.92, 1.5, "as on an H200"},
    {"headdim", "sm_write_bytes", 0.2, 2, "as on an H200: headdim 72"},
    {"split", "sm_write_bytes", 0.24, 0.56, "as on an H200: four rows' LSE"},
    {"headdim", "l2_read_bytes", 6.0, 12.7, drift},
    {"paged", "l2_read_bytes", 11.2, 33.3, drift},
    {"synchronous", "l2_read_bytes", 5.9, 18.8, drift},
    {"scores", "dram_read_bytes", 2.6, 9.1, lost},
    {"forced spill", "dram_read_bytes", 9.1, 20.6, "as on an H200: 8192 keys without a mask"},
    {"headdim", "cycles", 3.9, 12.7, "as on an H200: headdim 100"},
    {"paged", "cycles", 6.3, 11.6, "as on an H200, 5.9 there"},
    {"forced spill", "cycles", 5.5, 15.5, "L2, which it keeps busy: at what rate it is read is an estimate"},
    {"paged", "dram_write_bytes", 18.3, 50, drift},
    {"scores", "dram_write_bytes", 16.6, 25.6, "as on an H200, 12.0 there"},
};

TEST(Panel, AnH100ThatTheModelsHadNotSeen) { expect_goals(counted_panel("h100_panel.csv", "h100"), beyond); }

}  // namespace
}  // namespace attest
