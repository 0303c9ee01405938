#include "attest/fuzz/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "attest/cpu/backward_mutants.h"
#include "attest/cpu/cpu_kernel.h"
#include "attest/cpu/mutants.h"
#include "attest/problem/error.h"
#include "cuda_kernels.h"

namespace attest {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Kernel> (*make)(std::string_view spec);
};

std::unique_ptr<Kernel> make_mutant(std::string_view id) {
  for (const auto* mutants : {&forward_mutants(), &backward_mutants()})
    for (const Mutant& mutant : *mutants)
      if (mutant.id == id) return mutant.make({});
  throw InvalidInput("kernel", fmt::format("'mutant:{}'", id), "is no mutant; see attest mutants");
}

constexpr Entry entries[] = {
    {"cpu",
     [](std::string_view spec) -> std::unique_ptr<Kernel> {
       return std::make_unique<CpuKernel>(parse_cpu_plan_spec(spec));
     }},
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(std::string_view spec) {
  const auto colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? std::string_view{} : spec.substr(colon + 1);
  if (name == "mutant") return make_mutant(rest);
  for (const Entry& entry : entries)
    if (entry.name == name) return entry.make(rest);
  for (const std::string_view cuda : cuda_kernel_names)
    if (cuda == name) return make_cuda_kernel(name, rest);
  throw InvalidInput("kernel", fmt::format("'{}'", name),
                     fmt::format("is none of {}", fmt::join(kernel_names(), ", ")));
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  names.insert(names.end(), std::begin(cuda_kernel_names), std::end(cuda_kernel_names));
  return names;
}

std::vector<KernelEntry> list_kernels() {
  std::vector<KernelEntry> kernels;
  for (const Entry& entry : entries) kernels.push_back({std::string(entry.name), entry.make({})->capability(), {}});
  const std::string unavailable = cuda_state().unavailable;
  for (const std::string_view name : cuda_kernel_names)
    if (auto capability = cuda_capability(name)) kernels.push_back({std::string(name), *capability, unavailable});
  return kernels;
}

}  // namespace attest
