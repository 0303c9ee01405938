// Requests of SMs for the same lines that merge on their way to L2.
#pragma once
#include <vector>

namespace attest {

/// What stands between a cluster of SMs (a GPC) and L2: a request for lines that are on their way already is not sent
/// again, if it comes while the first one is under way and at most `most_merged` ask together. Measured on an H200
/// (docs/results/h200-l2.md, merge_pair and merge_group): SMs of one GPC merge, others never; four at most; the window
/// is about 60 cycles where L2 has the line, 400 to 460 where it comes from DRAM, which began when
/// the first SM of any GPC asked for it (docs/results/h200-sm.md, drift).
class Coalescer {
 public:
  static constexpr int most_merged = 4;
  static constexpr double window_l2 = 60, window_dram = 430;  // cycles

  /// The requests for one tile, by GPC.
  struct Tile {
    struct Request {
      double since = -1e18, until = -1e18;  // until when lines from DRAM are under way
      double from_dram = 0;                 // share of lines that are
      int merged = most_merged;
    };
    std::vector<Request> by_gpc;
    double arrives = -1e18, lacked = 0;  // when what L2 lacked is there, and its share
  };

  explicit Coalescer(int gpcs) : gpcs_(gpcs) {}

  /// An SM of `gpc` asks for the tile, of which L2 lacks `from_dram`: the share of it that goes to L2.
  double ask(Tile& tile, int gpc, double now, double from_dram) const {
    if (tile.by_gpc.empty()) tile.by_gpc.resize(static_cast<std::size_t>(gpcs_));
    Tile::Request& pending = tile.by_gpc[static_cast<std::size_t>(gpc)];
    if (from_dram > 0 && now > tile.arrives) tile.arrives = now + window_dram, tile.lacked = from_dram;
    if (pending.merged < most_merged) {
      const bool in_l2 = now - pending.since <= window_l2;
      if (in_l2 || now <= pending.until) {
        ++pending.merged;
        return in_l2 ? 0 : 1 - pending.from_dram;
      }
    }
    pending = {now, tile.arrives, tile.lacked, 1};
    return 1;
  }

 private:
  int gpcs_;
};

}  // namespace attest
