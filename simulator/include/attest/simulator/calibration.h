// A device file for a GPU of which some fields were measured.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "attest/simulator/device.h"

namespace attest {

/// What device_from_json_text() reads: the text of a device's file.
nlohmann::ordered_json to_json(const DeviceSpec& device);

/// Of the devices that travel in the program the one whose compute capability is nearest, then the one whose number of
/// SMs is, then whose memory is; of kind gpu.
DeviceSpec nearest_device(std::int64_t compute_capability, std::int64_t num_sms, std::int64_t dram_bytes);

/// The GPU that travels in the program and whose name stands in CUDA's name for a GPU, as one of its words or as
/// several in a row: h100 in "NVIDIA H100 80GB HBM3", rtx4090 in "NVIDIA GeForce RTX 4090", none in "NVIDIA GH200
/// 480GB".
std::optional<DeviceSpec> device_called(std::string_view gpu);

/// The device as a chip of it is whose GPCs lie on these sides, which are each chip's own and one chip's in a device's
/// file: as it is where they are not known or L2 has one partition. Clocks and shares stay that chip's. Throws
/// InvalidInput naming gpc_sides where they are not as many as the device has GPCs, or all on one side.
DeviceSpec device_of_chip(const DeviceSpec& device, const std::vector<double>& gpc_sides);

/// The device of which `measured` has the fields that its origins name; the others are as `nearest` has them, marked as
/// estimates. Of those, gpc_clocks are 1 where the numbers of GPCs differ, and l2_slices_per_partition is the most that
/// divides the sets. gpc_sides, measured or not, are 0 where L2 has one partition, and alternate where it has two and
/// all were on one side. Throws InvalidInput naming the field for a value that no device can have.
DeviceSpec calibrated_device(std::string_view name, std::string_view description, const DeviceSpec& measured,
                             const DeviceSpec& nearest);

/// So many lines that are asked for together, and cycles until the last of them is there.
struct LinesTime {
  int lines = 0;
  double cycles = 0;
};
struct Latency {
  double cycles = 0, tail_cycles = 0;
};

/// A latency and the mean of an exponential variate beyond it, of which the largest of as many as there are lines is
/// waited for: the least squares. Throws EnvironmentError where fewer than two numbers of lines were measured, or the
/// slowest line costs nothing.
Latency latency_of(const std::vector<LinesTime>& measured);
/// Likewise of a latency that is known, what lies beyond it; 0 where all are there sooner.
double latency_tail_of(const std::vector<LinesTime>& measured, double latency);

/// Two walks of all SMs over the same lines, past L1: what part of L2 those lines are, and of the second walk's bytes
/// the share that DRAM read.
struct CyclicWalk {
  double filled = 0, missed = 0;
};

/// Partitions that each keep a copy, 1 or 2, of walks over a contiguous range, the shortest first: half of the bytes
/// miss where they are more than all of L2, or half of it. Throws EnvironmentError with what was seen where it is
/// neither.
std::int64_t l2_partitions_of(const std::vector<CyclicWalk>& contiguous);

/// Ways of an LRU cache, a power of two up to 32, of walks over lines in random sets: a line misses where the others of
/// its set, Poisson distributed, are as many as ways. Throws EnvironmentError where no number of ways has the walks
/// within 0.1 in the root mean square, or there is no walk.
std::int64_t l2_ways_of(const std::vector<CyclicWalk>& scattered, std::int64_t partitions);

/// Ways that stay dirty where `part` of L2 does after it was written once over: a set with one more is cleaned by its
/// next access, so it is the whole number below; all ways where no more than one is missing.
std::int64_t l2_dirty_ways_of(double part, std::int64_t ways);

/// When a CTA asked for each of its key tiles, in cycles of one clock. CTAs of a group are alike but for chance.
struct WalkedTiles {
  int group = 0;
  std::vector<double> asked;
};
/// How far CTAs of a group come to lie apart while they walk n key tiles, over the square root of n and as a part of a
/// key tile's time: of n = 16, from the 16th tile on. Throws EnvironmentError where no group has two CTAs of 33 tiles.
double step_deviation_of(const std::vector<WalkedTiles>& ctas);

/// Each GPC's clock over the mean of all GPCs, and how far a launch's lie apart (the root mean square); the means over
/// launches, of which each has the clocks of all GPCs, in any unit. Throws EnvironmentError where there is none.
struct GpcClocks {
  std::vector<double> over_mean;
  double deviation = 0;
};
GpcClocks gpc_clocks_of(const std::vector<std::vector<double>>& launches);

}  // namespace attest
