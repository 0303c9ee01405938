// A case of headdim 128, and plans with what compilers made of their kernels for a device.
#pragma once
#include <string_view>

#include "attest/plan/catalog.h"
#include "attest/simulator/device.h"

namespace attest {

inline Case d128() {
  Case c;
  c.problem = {1, 4, 4, 2048, 2048, 128, 128, Dtype::bf16, {}, Causal::none, -1, -1};
  return c;
}

inline KernelPlan plan_on(const char* device, std::string_view name, const Case& c) {
  return plan_named(name, c, load_device(device));
}

}  // namespace attest
