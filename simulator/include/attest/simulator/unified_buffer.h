// What a plan's tiles cost on a device of cube and vector cores: which buffers they fill, and what S, P and P V move
// between the cores. Assumptions and their evidence: docs/simulator.md, "Cube and vector cores".
#pragma once
#include <optional>

#include "attest/simulator/plan_file.h"
#include "attest/simulator/report.h"

namespace attest {

/// Bytes that one work item holds in each buffer. A cube core works on a query tile with its share of vector cores.
struct BufferFootprint {
  std::int64_t l1 = 0;              // Q's tile, the slots of K and V, P's tile
  std::int64_t l0a = 0, l0b = 0;    // one matrix step of the left and the right operand
  std::int64_t l0c = 0;             // the larger of S's tile and P V's, fp32
  std::int64_t unified_buffer = 0;  // a vector core's rows of S (fp32), P, P V and O (fp32 both), maximum and sum
};
BufferFootprint buffer_footprint(const KernelPlan& plan, const DeviceSpec& device);

/// Bytes of S, P and P V that `key_tiles` key tiles send through global memory: written by one kind of cores and read
/// by the other. 0 where the device keeps them between its cores.
double exchange_bytes(const KernelPlan& plan, const DeviceSpec& device, std::int64_t key_tiles);

/// What such a device lacks for `plan`: the model of a feature of the case, or room in a buffer for a tile.
std::optional<PlanFault> beyond_unified_buffer(const KernelPlan& plan, const Case& c, const DeviceSpec& device);

/// The report of simulate() for a device of that kind; `c` and `plan` have been checked.
SimulationReport simulate_unified_buffer(const Case& c, const KernelPlan& plan, const DeviceSpec& device,
                                         std::string_view plan_name);

}  // namespace attest
