// What the cost models know of a device: a plain record with units in its names, read from JSON in which every field
// carries its value and where the value comes from.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace attest {

/// Where a field's value comes from.
struct FieldOrigin {
  std::string field;
  std::string text;  // the document by its title, "measured: how", or why it is an estimate
  bool estimated = false;
};

/// gpu: multiprocessors with shared memory. cube_vector: cores that multiply matrices and cores that do the rest, each
/// with buffers of its own, which exchange S, P and P V.
enum class DeviceKind : std::uint8_t { gpu, cube_vector };

/// Fields of the other kind are 0, but for these, which both kinds' models read: of a cube_vector device num_sms is its
/// cube cores, sm_clock_hz its cores' clock, smem_bytes_per_cta_max its unified buffer, and rates an SM are those of a
/// cube core and the vector cores beside it; l2_partitions is 1.
struct DeviceSpec {
  std::string name;
  std::string description;
  DeviceKind kind = DeviceKind::gpu;

  // ---- multiprocessors
  std::int64_t compute_capability = 0;  // 10 * major + minor; 0: not a CUDA device
  std::int64_t num_sms = 0;
  // GPCs, clusters of SMs whose requests merge on the way to L2, in the order in which a grid fills them: the L2
  // partition on whose side each lies, a whole number, and its clock over the mean of all under wgmma; and how far
  // clocks lie from their mean under mma.sync, over how far they do there
  std::vector<double> gpc_sides, gpc_clocks;
  double gpc_clock_spread_mma_sync_over_wgmma = 0;
  double sm_clock_hz = 0;
  std::int64_t warp_schedulers_per_sm = 0;
  std::int64_t registers_per_sm = 0;
  std::int64_t registers_per_thread_max = 0;
  std::int64_t register_allocation_unit = 0;  // registers; a warp is given a multiple of it
  std::int64_t max_warps_per_sm = 0;
  std::int64_t max_ctas_per_sm = 0;

  // ---- shared memory and L1
  std::int64_t smem_bytes_per_sm = 0;
  std::int64_t smem_bytes_per_cta_max = 0;
  std::int64_t smem_reserved_bytes_per_cta = 0;
  std::int64_t l1_and_smem_bytes_per_sm = 0;  // what is not set aside for shared memory is L1
  double smem_bytes_per_clock = 0;            // an SM; one wavefront moves 128 bytes
  double smem_latency_cycles = 0;

  // ---- arithmetic, an SM and a clock
  double mma_sync_fma_per_clock_16bit = 0;  // by mma.sync
  double wgmma_fma_per_clock_16bit = 0;     // by wgmma; 0: there is none
  double wgmma_fma_per_clock_8bit = 0;
  double fp32_fma_per_clock = 0;
  double exp_per_clock = 0;
  // cycles a warp instruction of a scheduler: maxima, selections and packing go through one pipe, sums and products
  // through another; and from a wgmma's issue to its warpgroup seeing it, beyond the tensor pipe's time
  double alu_instruction_cycles = 0, fma_instruction_cycles = 0, wgmma_latency_cycles = 0;
  // how many times as long they take while wgmma multiplies for another warpgroup
  double alu_beside_wgmma = 1, fma_beside_wgmma = 1;
  double scaled_exp_beside_wgmma = 1;  // likewise an exponential with the product that scales its score

  // ---- how far CTAs drift apart: standard deviations, as fractions
  // of a key tile's time where it is a random walk, by mma.sync with several CTAs on the SM or one alone, by one or two
  // warpgroups of wgmma and by more
  double step_deviation_mma_sync = 0, step_deviation_mma_sync_alone = 0;
  double step_deviation_wgmma = 0, step_deviation_wgmma_3 = 0;

  // ---- L2 and DRAM
  std::int64_t l2_bytes = 0;
  std::int64_t l2_partitions = 0;            // each of which keeps copies of what its SMs read
  std::int64_t l2_slices_per_partition = 0;  // among which the lines of 8 KiB are dealt out
  std::int64_t l2_ways = 0;
  std::int64_t l2_dirty_ways = 0;        // of a set that stay dirty at most
  double l2_bytes_per_second = 0;        // all SMs together, reads that hit
  double l2_write_bytes_per_second = 0;  // likewise, written
  // what SMs get of that beside each other where all ask for as much as they can, in the order of gpc_sides, spread
  // evenly over the SMs where they are fewer or more numbers
  std::vector<double> l2_shares{1};
  // until a warp has a line from the near partition, the mean of all SMs and slices; and the mean of what it waits
  // beyond that for one of any page, where others ask too, which is as likely to last long as an exponential variate
  double l2_latency_cycles = 0, l2_latency_tail_cycles = 0;
  std::int64_t dram_bytes = 0;
  double dram_bytes_per_second = 0;
  double dram_efficiency = 1;       // the part of that rate that kernels reach which read and write
  double dram_read_efficiency = 1;  // and those that read alone
  // likewise from DRAM, with the way through L2 in it
  double dram_latency_cycles = 0, dram_latency_tail_cycles = 0;

  // ---- launches
  double launch_crossing_bytes = 0;  // between L2's partitions, of a kernel that does nothing
  double kernel_launch_cycles = 0;   // of a kernel of one CTA, around all that it does
  double cta_launch_cycles = 0;      // from a CTA's end to the start of the one that takes its place
  double cta_start_cycles = 0;       // what one on each other SM adds to that, mostly until its stores are seen
  double argument_line_cycles = 0;   // of the first use of 64 bytes of a kernel's arguments
  double bulk_prologue_cycles = 0;   // from the start of a CTA with a producer to its first copy

  // ---- machine code: what an SM keeps of it, and what it gets of more where all SMs walk different code
  std::int64_t code_cache_bytes = 0;
  double code_bytes_per_clock = 0;

  // ---- machine code that no plan implies, as a multiple of what it takes on compute capability 9.0
  double copy_time_scale = 1;    // of the function that copies small granules, pages and packed heads
  double kernel_code_scale = 1;  // around the loops over key tiles, and in them for masks and score modifiers

  // ---- cube and vector cores
  std::int64_t num_cube_cores = 0, num_vector_cores = 0;  // vector cores are a multiple of cube cores
  double core_clock_hz = 0;
  double cube_fma_per_clock_16bit = 0;                       // a cube core
  double vector_fp32_per_clock = 0;                          // operations, a vector core
  double vector_exp_per_clock = 0;                           // a vector core
  std::int64_t unified_buffer_bytes = 0;                     // a vector core
  std::int64_t l1_bytes = 0;                                 // a cube core: tiles of Q, K, V and P
  std::int64_t l0a_bytes = 0, l0b_bytes = 0, l0c_bytes = 0;  // a cube core: left and right operands, products
  std::int64_t scores_through_global_memory = 0;             // 1: S, P and P V cross L2 between the two kinds of cores

  // ---- the host's side
  double launch_overhead_seconds = 0;  // from one kernel's end to the next one's start in a stream

  std::vector<FieldOrigin> origins;  // of the fields above that the device's kind has, in the order of its table

  int gpcs() const { return static_cast<int>(gpc_sides.size()); }
  const FieldOrigin& origin(std::string_view field) const;
  /// How many of these are marked estimated.
  std::size_t num_estimates() const;
};

using DeviceMember = std::variant<std::int64_t DeviceSpec::*, double DeviceSpec::*, std::vector<double> DeviceSpec::*>;

/// The field's name in device files.
std::string_view device_field_name(DeviceMember member);

/// What a device file may have for the field, inclusive; of a list each entry.
struct FieldRange {
  double low = 0, high = 0;
};
FieldRange device_field_range(DeviceMember member);

/// The names of all fields that a device file of either kind has.
std::vector<std::string_view> device_field_names();

/// The device with another value of one field. Throws InvalidInput, as device_from_json_text() does, for a field of the
/// other kind and for a value that no device can have; `whence`, such as "--sweep", stands in for the file's name.
DeviceSpec device_with(const DeviceSpec& device, std::string_view field, const nlohmann::ordered_json& value,
                       std::string_view whence);

/// The device with one field times `factor`, within the field's limits; whole numbers are rounded down, and of a list
/// every second entry moves, for entries that an estimate has alike differ (clocks then over their mean). None where
/// that is the same device. Throws InvalidInput where other fields refuse the value.
std::optional<DeviceSpec> device_scaled(const DeviceSpec& device, std::string_view field, double factor);

/// Takes a field's value, but not where it comes from, as `from` has it.
void copy_device_field(std::string_view field, const DeviceSpec& from, DeviceSpec& to);

/// Reads {"schema": "attest/device/1", "name", "description", "kind": "gpu" (which it is by default) or "cube_vector",
/// "fields": {field: {"value": v, "source": text} or {"value": v, "estimated": why}}}. Every field of the kind must be
/// there and no other. Throws InvalidInput naming the field, its
/// value, the limit and `file`.
DeviceSpec device_from_json_text(std::string_view text, std::string_view file);

/// The device that `name_or_path` says: one that travels in the program, or a file (what ends in .json or has a '/').
/// Throws InvalidInput naming `device` for an unknown name, EnvironmentError for a file that cannot be read.
DeviceSpec load_device(const std::string& name_or_path);

/// Names of the devices that travel in the program, sorted.
std::vector<std::string> device_names();

}  // namespace attest
