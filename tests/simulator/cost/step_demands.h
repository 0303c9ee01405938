// Plans and demands of a key tile, made by hand.
#pragma once
#include "attest/simulator/step_time.h"

namespace attest {

/// Of n warps with 16 query rows each.
inline KernelPlan warps(int n) {
  KernelPlan plan;
  plan.num_warps = n;
  plan.tile_m = 16 * n;
  return plan;
}

/// Of n warpgroups with 64 query rows each and a producer.
inline KernelPlan of_warpgroups(int n, int tile_n = 64) {
  KernelPlan plan;
  plan.num_warps = 4 * n, plan.tile_m = 64 * n, plan.tile_n = tile_n;
  plan.producer_warps = 4;
  plan.copy_kind = CopyKind::tma, plan.matrix_kind = MatrixKind::wgmma;
  return plan;
}

/// A device whose pipes take no notice of products beside them, so that times add up by hand.
inline DeviceSpec undisturbed() {
  DeviceSpec device = load_device("h200");
  device.alu_beside_wgmma = device.fma_beside_wgmma = device.scaled_exp_beside_wgmma = 1;
  return device;
}

/// Cycles of the tensor pipe, of exponentials and of maxima.
inline StepDemand demand_of(double tensor, double exp, double maxima) {
  StepDemand d;
  d.tensor = tensor, d.exp = exp, d.maxima = maxima;
  return d;
}

}  // namespace attest
