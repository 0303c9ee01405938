// Rates and latencies of an SM's pipes, each measured by one CTA alone. All throw std::runtime_error with CUDA's words
// where a call of it fails.
#pragma once

#include <string>
#include <vector>

namespace attest::hardware {

/// Cycles a warp instruction of a scheduler, with so many warps on it and chains of it that do not wait for each other
/// (1: latency).
struct PipeRate {
  std::string kind;
  int warps_a_scheduler = 0, chains = 0;
  double cycles = 0;
};
std::vector<PipeRate> measure_pipes();

/// Likewise of one warpgroup while wgmma multiplies for nobody, for it or for another warpgroup, and how long the
/// products took from 500 cycles before the instructions (they must outlast these). For compute capability 9.0.
struct RateBesideProducts {
  std::string kind, products;
  double cycles = 0;
  long long products_cycles = 0;
};
std::vector<RateBesideProducts> measure_beside_products();

/// Cycles an instruction of a warp on each scheduler, with so many mma.sync among 8 of them: alone, and while another
/// warp of the scheduler issues mma.sync without end; and cycles of such an mma.sync while they are issued without end.
struct RateBesideMma {
  std::string kind;
  int products = 0;
  double alone = 0, beside = 0, of_product = 0;
};
std::vector<RateBesideMma> measure_beside_mma();

/// Cycles an executed instruction of a scheduler, of a loop of so many fma, with a taken branch over 32 instructions
/// after each 32 of them or without, that one or two warps of a scheduler walk, in step or a loop's length apart.
struct FetchRate {
  int instructions = 0;
  bool skips = false;
  int warps_a_scheduler = 0;
  bool apart = false;
  double cycles = 0;
};
std::vector<FetchRate> measure_fetch();

/// Cycles that a warp takes for an instruction of a loop of so many fma, 16 bytes each, of which `chains` at a time do
/// not depend on one another; the slowest of all SMs' warps. Those of an SM walk it in `streams` groups of neighbours,
/// which are elsewhere in the loop, and so is each SM where there are several groups.
struct FetchOfStreams {
  int instructions = 0, chains = 0, sms = 0, warps_a_scheduler = 0, streams = 0;
  double cycles = 0;
  double at_first = 0;  // in the launch's first turn
};
std::vector<FetchOfStreams> measure_fetch_of_streams();

/// Two CTAs of four warps on each of so many SMs walk so many fma straight, each waiting for the one before, and then
/// stay in 8 KB of code for `turns` times 512: cycles that an instruction of the walk takes, and both together. CTAs
/// begin together or `apart`.
struct WalkedCode {
  int instructions = 0, sms = 0, turns = 0;
  bool apart = false;
  double cycles = 0, round_cycles = 0;
};
std::vector<WalkedCode> measure_walked_code();

/// Cycles of a turn of a loop of `blocks` times `block` fma on so many warps of each scheduler: without jumps, with one
/// taken over `skipped` instructions after each block, and with one behind which a warp's lanes meet again.
struct JumpTime {
  int block = 0, skipped = 0, blocks = 0, warps_a_scheduler = 0;
  double straight = 0, uniform = 0, reconverging = 0;
};
std::vector<JumpTime> measure_jumps();

/// Cycles from the first's issue to the end of `products` wgmma in a row, 64 x `columns` x 16. For 9.0.
struct ProductsTime {
  int columns = 0;
  std::string a;  ///< A's place
  int warpgroups = 0, products = 0;
  double cycles = 0;
};
std::vector<ProductsTime> measure_wgmma();

}  // namespace attest::hardware
