#include "kernel_flag.h"

#include <vector>

#include "attest/fuzz/kernels.h"
#include "attest/gpu/plugin.h"
#include "attest/gpu/python_kernel.h"
#include "case_flags.h"

namespace attest::tools {

void declare_kernel_flag(Flags& flags) {
  flags.value(
      "--kernel", "K",
      "NAME of `attest kernels`, NAME:SPEC such as cpu:tile_m=64,stages=2, mutant:ID, or your own: ./libmine.so, "
      "./mine.py (cpu)");
}

std::string read_kernel(const Flags& flags) {
  std::string kernel = flags.text("--kernel").value_or("cpu");
  if (is_python_kernel(kernel) || is_plugin(kernel)) {
    check_plugin_file(is_python_kernel(kernel) ? python_file(kernel) : plugin_spec(kernel).path);
    return kernel;
  }
  std::vector<std::string> names = kernel_names();
  names.emplace_back("mutant");
  refuse_unknown("kernel", kernel.substr(0, kernel.find(':')), names);
  return kernel;
}

}  // namespace attest::tools
