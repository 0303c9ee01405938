#include "attest/fuzz/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "attest/cpu/backward_mutants.h"
#include "attest/cpu/cpu_kernel.h"
#include "attest/cpu/mutants.h"
#include "attest/gpu/built_in.h"
#include "attest/gpu/plugin.h"
#include "attest/gpu/python_kernel.h"
#include "attest/gpu/table_kernel.h"
#include "attest/problem/error.h"
#include "cuda_kernels.h"

namespace attest {
namespace {

const attest_kernel_api* cpu_api(std::uint32_t /*host_abi_version*/) {
  static const CpuKernel model;
  static const attest_capability capability = to_api(model.capability(), ATTEST_ARITHMETIC_FLASH);
  static const attest_kernel_api table = plugin::table_of(&capability, [](const char* options, void** self,
                                                                          attest_text* message) {
    return create_built_in(self, message, [&] { return std::make_unique<CpuKernel>(parse_cpu_plan_spec(options)); });
  });
  return &table;
}

std::unique_ptr<Kernel> make_mutant(std::string_view id) {
  for (const auto* mutants : {&forward_mutants(), &backward_mutants()})
    for (const Mutant& mutant : *mutants)
      if (mutant.id == id) return mutant.make({});
  throw InvalidInput("kernel", fmt::format("'mutant:{}'", id), "is no mutant; see attest mutants");
}

// What a library's symbol is, for those that are part of this program.
struct BuiltIn {
  std::string_view name;
  KernelSymbol symbol;  // null: not in this build, for want of CUDA
};

std::vector<BuiltIn> built_ins() {
  std::vector<BuiltIn> all = {{"cpu", cpu_api}};
  for (const std::string_view name : cuda_kernel_names) all.push_back({name, cuda_symbol(name)});
  return all;
}

std::unique_ptr<Kernel> make_kernel_of(const attest_kernel_api* api, const std::string& options) {
  const bool on_device = read_record(read_api(api)).device == ATTEST_DEVICE_CUDA;
  return make_table_kernel(api, options, on_device ? make_cuda_place() : make_host_place());
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(std::string_view spec) {
  if (is_python_kernel(spec)) return make_python_kernel(spec);
  if (is_plugin(spec)) {
    const PluginSpec plugin = plugin_spec(spec);
    return make_kernel_of(load_plugin(plugin.path), plugin.options);
  }
  const auto colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const std::string rest(colon == std::string_view::npos ? std::string_view{} : spec.substr(colon + 1));
  if (name == "mutant") return make_mutant(rest);
  for (const BuiltIn& kernel : built_ins())
    if (kernel.name == name) {
      if (kernel.symbol == nullptr) make_cuda_place();  // throws, and says why there is none
      return make_kernel_of(kernel.symbol(ATTEST_KERNEL_ABI), rest);
    }
  throw InvalidInput("kernel", fmt::format("'{}'", name),
                     fmt::format("is none of {}", fmt::join(kernel_names(), ", ")));
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const BuiltIn& kernel : built_ins()) names.emplace_back(kernel.name);
  return names;
}

std::vector<KernelEntry> list_kernels() {
  std::vector<KernelEntry> kernels;
  const std::string no_cuda = cuda_state().unavailable;
  for (const BuiltIn& kernel : built_ins()) {
    if (kernel.symbol == nullptr) continue;
    Capability capability = read_capability(read_record(read_api(kernel.symbol(ATTEST_KERNEL_ABI))));
    std::string unavailable = capability.device == "cuda" ? no_cuda : "";
    kernels.push_back({std::string(kernel.name), std::move(capability), std::move(unavailable)});
  }
  return kernels;
}

}  // namespace attest
