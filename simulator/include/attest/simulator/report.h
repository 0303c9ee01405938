// The prediction: what a plan costs on a case and a device, before anybody runs it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attest/plan/catalog.h"
#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"
#include "attest/simulator/counts.h"
#include "attest/simulator/device.h"
#include "attest/simulator/occupancy.h"
#include "attest/simulator/tile_walk.h"
#include "attest/simulator/unfused.h"
#include "attest/simulator/utilisation.h"

namespace attest {

/// A figure under its name in the JSON ("time_us", "unfused.cycles"): as predicted, and with half and twice a field of
/// the device; none where that is refused.
struct FigureMove {
  std::string name;
  double value = 0;
  std::optional<double> halved, doubled;
};

/// A field of the device that is an estimate, and the figures that move with it; why it was not halved or doubled,
/// where no such device can be or the plan does not fit it.
struct Estimate {
  std::string field, why;
  std::vector<FigureMove> figures;
  std::string halved_refused, doubled_refused;
};

/// Bytes are whole-kernel totals; the names are those of the JSON.
struct SimulationReport {
  Case c;
  std::string plan_name;
  KernelPlan plan;
  DeviceSpec device;

  double dram_read_bytes = 0, dram_write_bytes = 0;
  double code_read_bytes = 0;                    // of dram_read_bytes, the kernel's own code, where its size is known
  double compulsory_bytes = 0;                   // read and written once
  double sm_read_bytes = 0, sm_write_bytes = 0;  // at the SM's side; spill stores are in the writes
  double l2_crossing_bytes = 0;                  // between its partitions, read and written
  double l2_read_bytes = 0;                      // at L2's side, after requests of neighbours have merged
  double smem_wavefronts = 0, smem_wavefronts_ideal = 0;
  std::vector<AccessWavefronts> smem_accesses;  // what they are made of
  int smem_bytes_per_cta = 0;                   // with what the system reserves
  int registers_per_thread = 0;
  int spill_bytes_per_thread = 0;   // stored in each key tile
  int parked_bytes_per_thread = 0;  // stored once a CTA, or oftener, but not by every key tile
  double spill_store_bytes = 0;     // of sm_write_bytes
  double spill_load_bytes = 0;      // of L1; what misses it is in sm_read_bytes
  // That a warp moves them by, up to four words each; known of gpu/sm80's compiled kernels.
  std::optional<double> spill_store_instructions, spill_load_instructions;
  int ctas_per_sm = 0;
  double cycles = 0;
  double time_us = 0;          // cycles at the device's clock; a launch is not in it
  double flops = 0;            // of visible pairs
  double flops_unmasked = 0;   // of the whole rectangle
  double flops_executed = 0;   // what the matrix unit does: masked pairs of visited tiles and padding included
  double exp_count = 0;        // of scores, masked ones in visited tiles included; factors that rescale O are not
  double xu_instructions = 0;  // warp instructions of the unit they share with reciprocals, tanh and conversions
  int kernels = 1;
  double hbm_reduction_vs_unfused = 0;  // 1 - DRAM bytes / DRAM bytes of the unfused path
  std::string bound;                    // the busiest resource; "latency" if none reaches a third of its peak

  UnfusedCost unfused;
  double unfused_speedup = 0;  // times with launches: unfused over fused
  RegisterEstimate registers;
  Occupancy occupancy;
  std::vector<Utilisation> utilisation;
  std::optional<std::vector<Estimate>> hangs_on;  // estimates_behind() (sensitivity.h), where it was asked for
  TileWalk walk;
  TileWalkOptions walk_options;  // the times it was walked with
};

/// Why a forward of this case has no prediction, naming the field that the cost models do not describe; none if it has.
std::optional<std::string> unpredicted(const Case& c);

/// Throws InvalidInput where unpredicted() says why, or the plan is invalid, is made for another head dimension or
/// dtype, or does not fit the device. `effort` says how much of it is walked; its times are filled in.
SimulationReport simulate(const Case& c, const KernelPlan& plan, const DeviceSpec& device,
                          std::string_view plan_name = "", const TileWalkOptions& effort = {});

/// Fills in the unfused path and the ratios to it, from the report's own case, device, DRAM bytes and time_us.
void compare_with_unfused(SimulationReport& report);

/// What of a device named plans hang on.
PlanTarget plan_target(const DeviceSpec& device);

/// The plan of that name for a case on a device. Throws InvalidInput naming `plan`.
KernelPlan plan_named(std::string_view name, const Case& c, const DeviceSpec& device);

/// {"schema": "attest/predict/1", ...}: the contract's names, and the parts they were made of.
nlohmann::ordered_json to_json(const SimulationReport& report);

/// Of each kind of access to shared memory: its use, its instruction, wavefronts and how many without conflicts, and n
/// of its worst n-way conflict.
nlohmann::ordered_json to_json(const std::vector<AccessWavefronts>& accesses);

/// A table for a terminal: fused beside unfused, the bound, and what the answer hangs on.
std::string to_table(const SimulationReport& report);

}  // namespace attest
