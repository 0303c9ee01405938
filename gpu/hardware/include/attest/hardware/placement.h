// Where things are: which L2 partition each SM and each 4 KiB page belongs to, which SMs share a GPC, and in which
// order a launch gives CTAs to SMs. All throw std::runtime_error with CUDA's words where a
// call of it fails.
#pragma once

#include <cstdint>
#include <vector>

namespace attest::hardware {

struct SmPlace {
  int side = 0;          ///< L2 partition, 0 being that of SM 0
  int rank_of_side = 0;  ///< 0, 1, 2, ... among the SMs of that side
  int gpc = 0;           ///< the lowest SM id of its GPC
};

/// The place of every SM, by SM id. Sides by the latency of atomics, which run at a line's home partition; GPCs by
/// which SMs clusters were placed on.
std::vector<SmPlace> locate_sms();

/// The side of each GPC, 0 or 1, by the lowest SM of it: a grid fills GPCs in that order, from one of them on. Throws
/// std::runtime_error where SMs of a GPC lie on both.
std::vector<double> sides_of_gpcs(const std::vector<SmPlace>& sms);

/// Of what each of some SMs has, the mean over each GPC, by the lowest SM of it.
struct OfSm {
  unsigned sm = 0;
  double value = 0;
};
std::vector<double> means_of_gpcs(const std::vector<OfSm>& all, const std::vector<SmPlace>& sms);

/// The home partition of each 4 KiB page of a device buffer, in SmPlace's numbering.
std::vector<std::uint8_t> page_homes(std::uint8_t* buffer, std::int64_t bytes, const std::vector<SmPlace>& sms);

struct CtaStart {
  int sm = 0;
  int order = 0;  ///< 0 for the CTA that started first
};

/// Launches `ctas` CTAs that all wait for each other to start; by block index. `cluster` 1 is a plain launch.
std::vector<CtaStart> observe_dispatch(int ctas, int cluster, int smem_bytes);

}  // namespace attest::hardware
