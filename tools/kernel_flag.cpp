#include "kernel_flag.h"

#include <fmt/format.h>

#include <algorithm>
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

std::string kernel_file(const std::string& word) {
  if (is_python_kernel(word)) return python_file(word);
  return is_plugin(word) ? plugin_spec(word).path : "";
}

std::string code_file(const std::string& word) { return word.find_first_of("/.") == std::string::npos ? "" : word; }

std::string known_kernel(const std::string& word) {
  if (const std::string file = kernel_file(word); !file.empty()) {
    check_plugin_file(file);
    return word;
  }
  std::vector<std::string> names = kernel_names();
  names.emplace_back("mutant");
  refuse_unknown("kernel", word.substr(0, word.find(':')), names);
  return word;
}

std::string read_kernel(const Flags& flags) { return known_kernel(flags.text("--kernel").value_or("cpu")); }

void declare_timeout_flag(Flags& flags, double call_seconds) {
  flags.value("--timeout", "T", fmt::format("A run of the kernel that takes longer hangs ({}s)", call_seconds));
  flags.value("--load-timeout", "T",
              fmt::format("Loading it that takes longer hangs ({}s, or --timeout where that is more)",
                          WorkerProgram{}.load_seconds));
}

WorkerProgram worker_program(const Flags& flags) {
  WorkerProgram program;
  // What a kernel imports and opens while it is loaded is no call, and takes what it takes however short those are.
  program.load_seconds = std::max(program.load_seconds, flags.seconds("--timeout").value_or(0));
  if (const auto timeout = flags.seconds("--load-timeout")) program.load_seconds = *timeout;
  return program;
}

}  // namespace attest::tools
