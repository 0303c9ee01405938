// How far CTAs drift apart that walk key tiles of attention side by side: when each asks for each tile.
#pragma once

#include <memory>
#include <vector>

namespace attest::hardware {

inline constexpr int drift_tiles = 320;

struct DriftArguments;

/// What every SM runs: one persistent CTA of warpgroups of wgmma and a warp that copies K and V tiles ahead (`wgmma`),
/// or two CTAs of four warps or one of eight with mma.sync and cp.async (`mma_sync`), of 128 rows.
struct DriftKernel {
  const char* matrix;
  int tile_n, headdim, warpgroups;  ///< of four warps, also where mma.sync knows none
  bool turns;                       ///< warpgroups issue their products in turn
  int ctas_an_sm;
  int tile_bytes;   ///< K's, or V's
  int query_bytes;  ///< Q's, 0 where it stays
  void (*launch)(int sms, const DriftArguments& a);
};
std::vector<DriftKernel> drift_kernels();

/// Where key tiles come from.
struct DriftSource {
  int share;                       ///< consecutive CTAs that read one head; 0: nothing is copied
  int distinct;                    ///< tiles a head has; they are read again after that
  bool cold = false;               ///< L2 is filled with other data before each launch
  int keys_a_query = drift_tiles;  ///< divides drift_tiles; then O leaves and the next Q comes
};

/// When a CTA asked for the tile's K and V and ended its step, in cycles from the common start.
struct DriftTile {
  long long asked, asked_v, ended;
};
struct DriftCta {
  unsigned sm;
  double mhz;  ///< that SM's clock
  std::vector<DriftTile> tiles;
};

/// Its memory stays from kernel to kernel: what is freed is cleared while the next one is measured. All throws
/// std::runtime_error with CUDA's words where a call of it fails.
class DriftBench {
 public:
  DriftBench();
  ~DriftBench();
  DriftBench(const DriftBench&) = delete;
  DriftBench& operator=(const DriftBench&) = delete;

  /// The CTAs of each of so many launches, one behind the other. In a launch all CTAs start at one time of the global
  /// timer, and their cycles are of one clock, the mean of theirs.
  std::vector<std::vector<DriftCta>> measure(const DriftKernel& kernel, const DriftSource& source, int launches);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace attest::hardware
