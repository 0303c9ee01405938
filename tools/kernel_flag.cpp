#include "kernel_flag.h"

#include <vector>

#include "attest/fuzz/kernels.h"
#include "case_flags.h"

namespace attest::tools {

void declare_kernel_flag(Flags& flags) {
  flags.value("--kernel", "K",
              "NAME of `attest kernels`, NAME:SPEC such as cpu:tile_m=64,stages=2, or mutant:ID (cpu)");
}

std::string read_kernel(const Flags& flags) {
  std::string kernel = flags.text("--kernel").value_or("cpu");
  std::vector<std::string> names = kernel_names();
  names.emplace_back("mutant");
  refuse_unknown("kernel", kernel.substr(0, kernel.find(':')), names);
  return kernel;
}

}  // namespace attest::tools
