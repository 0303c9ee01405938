// Whether the device can run the copies of copy_probe.cu.
#include "copy_probe.h"

#include "attest/gpu/device.h"
#include "attest/problem/error.h"

std::string attest::test::unavailable(const KernelPlan& plan) {
  try {
    return open_device().smem_bytes_per_block < plan.smem_bytes() ? "the device has too little shared memory a block"
                                                                  : "";
  } catch (const EnvironmentError& none) {
    return none.what();
  }
}
