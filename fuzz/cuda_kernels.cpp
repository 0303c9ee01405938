#include "cuda_kernels.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <string>

#include "attest/fuzz/device_forwards.h"
#include "attest/fuzz/kernels.h"
#include "attest/gpu/device_kernel.h"
#include "attest/gpu/plugin.h"
#include "attest/gpu/reference64.h"
#include "attest/gpu/unfused.h"
#include "attest/problem/error.h"
#include "attest/sm80/ablation.h"
#include "attest/sm80/sm80_forward.h"

namespace attest {

namespace {

template <Sm80Ablation Ablation>
std::unique_ptr<DeviceForward> make_ablation() {
  return make_sm80_ablation(Ablation);
}

}  // namespace

std::unique_ptr<DeviceForward> make_device_forward(std::string_view kernel) {
  if (kernel == "sm80") return make_sm80_forward();
  if (kernel == "unfused") return make_unfused();
  for (const NamedAblation& named : sm80_ablations)
    if (kernel == named.name) return make_sm80_ablation(named.ablation);
  if (is_plugin(kernel)) {
    const PluginSpec plugin = plugin_spec(kernel);
    return make_table_forward(load_plugin(plugin.path), plugin.options);
  }
  throw InvalidInput("kernel", fmt::format("'{}'", kernel),
                     fmt::format("runs on no GPU; {} do", fmt::join(cuda_kernel_names, " and ")));
}

KernelSymbol cuda_symbol(std::string_view name) {
  if (name == "sm80") return device_api<make_sm80_forward, ATTEST_ARITHMETIC_FLASH>;
  if (name == "sm80-no-swizzle") return device_api<make_ablation<Sm80Ablation::no_swizzle>, ATTEST_ARITHMETIC_FLASH>;
  if (name == "sm80-sync-copies") return device_api<make_ablation<Sm80Ablation::sync_copies>, ATTEST_ARITHMETIC_FLASH>;
  if (name == "sm80-no-skip") return device_api<make_ablation<Sm80Ablation::no_skip>, ATTEST_ARITHMETIC_FLASH>;
  if (name == "sm80-spill") return device_api<make_ablation<Sm80Ablation::spill>, ATTEST_ARITHMETIC_FLASH>;
  if (name == "unfused") return device_api<make_unfused, ATTEST_ARITHMETIC_UNFUSED>;
  throw std::logic_error(fmt::format("no CUDA kernel is named {}", name));
}

std::unique_ptr<RunPlace> make_cuda_place() { return make_device_place(); }

TruthFunction gpu_truth() {
  open_device("take --truth cpu");
  return forward_with_budget_on_gpu;
}

CudaState cuda_state() {
  CudaState state;
  state.runtime = fmt::format("{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  try {
    open_device();
  } catch (const EnvironmentError& error) {
    state.unavailable = error.what();
  }
  return state;
}

}  // namespace attest
